/*
 * A process of the benchmark that serves at ports of 127.0.0.1. It ends with child_finish or at
 * exit(), and at the latest with the benchmark, however that ends: its standard input ends then.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t owner;        /* the process that may end this one, not a fork of it */
    pid_t pid;          /* 0: none */
    int input;          /* end of the pipe that is the process's standard input */
    struct child *next; /* of those that are running */
};

/*
 * Starts a process that runs `run`, or a program that `run` executes. It writes `count` port
 * numbers to its standard output as one line, closes it, and ends when its standard input does,
 * with what `run` returns as its exit code. Waits for the line, and fills in `ports`. Returns false
 * on failure, when no process is left.
 */
bool child_start(struct child *child, int (*run)(void *arg), void *arg, size_t count, int *ports);

/* Ends the process, if there is one, and waits for its end. */
void child_finish(struct child *child);

#endif
