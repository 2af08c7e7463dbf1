/*
 * More processes of a test program, which share memory with the test that starts them. Each process
 * is the program itself, started anew: main() asks crew_member whether it is a member.
 */
#ifndef REDLOCK_TEST_CREW_H
#define REDLOCK_TEST_CREW_H

#include "harness.h"

#define CREW_MAX 8

struct crew {
    struct fixture *fixture;
    size_t members;
    pid_t pids[CREW_MAX]; /* 0: has ended */
    void *memory;         /* shared by all members; zeros at first */
    size_t size;
    int descriptor;
};

/* Creates a crew without members. The end of the fixture kills those that are left, and frees it.
 */
struct crew *crew_create(struct fixture *f, size_t size);

/* Starts `members` processes, which get the URIs of the fixture's masters. */
void crew_start(struct crew *crew, size_t members);

/* Returns whether no member has ended yet. */
bool crew_is_at_work(const struct crew *crew);

/* Ends a member by SIGKILL, stopped or not, and waits for its end. crew_wait passes it over. */
void crew_kill(struct crew *crew, size_t member);

/* Waits until all members have ended, and asserts that they ended well. */
void crew_wait(struct crew *crew);

/* Does a member's work, in place of the tests. Returns the exit status. */
typedef int crew_work(size_t member, void *memory, char **uris, size_t count);

/*
 * Returns false in the process that runs the tests. In a member, runs `work` and sets *result to
 * its status.
 */
bool crew_member(int argc, char **argv, size_t size, crew_work *work, int *result);

#endif
