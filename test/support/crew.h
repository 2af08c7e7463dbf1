/*
 * More processes of a test program, which share memory with the test that starts them. Each is the
 * same program, started again: main() calls crew_member to find out whether it is a member.
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

/*
 * Creates a crew without members. At its end the fixture kills the remaining members and frees the
 * crew.
 */
struct crew *crew_create(struct fixture *f, size_t size);

/* Starts `members` processes, and passes them the URIs of the fixture's masters. */
void crew_start(struct crew *crew, size_t members);

/* Returns whether no member has ended yet. */
bool crew_is_at_work(const struct crew *crew);

/* Kills a member by SIGKILL, even a stopped one, and waits for its end. crew_wait then skips it. */
void crew_kill(struct crew *crew, size_t member);

/* Waits until all members have ended, and asserts that all succeeded. */
void crew_wait(struct crew *crew);

/* Does a member's work instead of running the tests. Returns the exit status. */
typedef int crew_work(size_t member, void *memory, char **uris, size_t count);

/*
 * Returns false in the process that runs the tests. In a member, runs `work` and sets *result to
 * its status.
 */
bool crew_member(int argc, char **argv, size_t size, crew_work *work, int *result);

#endif
