/* Runs redlock-bench, and reads its output. */
#ifndef REDLOCK_TEST_BENCH_H
#define REDLOCK_TEST_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* requires the headers above */
#include <cmocka.h>
#include <jansson.h>
#include <sys/types.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BENCH_OUTPUT_SIZE 8192

/* A master that gets no core for the usual timeout, beside other tests, would count as an error. */
#define PATIENT " --node-timeout 5000 "

/* Runs redlock-bench, and stores its whole output. Returns its exit code. */
int bench_run(const char *arguments, char output[BENCH_OUTPUT_SIZE]);

/*
 * Does what bench_run does, and calls `meanwhile` some hundred times a second until redlock-bench
 * prints something or ends.
 */
int bench_run_beside(const char *arguments, char output[BENCH_OUTPUT_SIZE],
                     void (*meanwhile)(void *arg), void *arg);

/* Runs redlock-bench on a terminal of its own, and stores everything that it shows there. */
int bench_run_on_terminal(const char *arguments, char output[BENCH_OUTPUT_SIZE]);

/* Starts redlock-bench, without its output. Returns its process. */
pid_t bench_start(const char *arguments);

/* Runs redlock-bench, and parses the output, which must be one JSON object and nothing else. */
json_t *bench_measure(const char *arguments);

json_int_t bench_integer(const json_t *object, const char *name);
double bench_real(const json_t *object, const char *name);

/* Arguments that are refused, and a part of the message. */
struct bench_refusal {
    const char *arguments;
    const char *message;
};

void bench_refuses(const struct bench_refusal *refusals, size_t count);

#endif
