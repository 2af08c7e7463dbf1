/*
 * Services that the library requests from others, and that fail at a chosen place: at the n-th
 * request, and at the requests right after it. The program itself counts them: the library's
 * allocations come through the allocator hook, the linker wraps the calls that the library makes
 * itself, and the program defines the socket and connect that hiredis calls.
 *
 * The services that the library's pollable loop requests fail in runs on that loop; the others, in
 * runs on libevent.
 */
#ifndef REDLOCK_TORTURE_FAULTS_H
#define REDLOCK_TORTURE_FAULTS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

enum fault {
    FAULT_ALLOC,
    FAULT_EVENT_ADD,
    FAULT_SOCKET,
    FAULT_CONNECT,
    FAULT_SODIUM_INIT,
    FAULT_HIREDIS, /* hiredis' own allocations */
    FAULT_CARES,   /* those of c-ares */
    FAULT_EPOLL_CTL,
    FAULT_EPOLL_CREATE,
    FAULT_TIMERFD_CREATE,
    FAULT_EVENTFD,
    FAULT_COUNT
};

/* Returns "alloc", "event_add", ... */
const char *fault_name(enum fault fault);

/* Returns why this kind of fault is not available in this build; NULL: it is available. */
const char *fault_lack(enum fault fault);

/* Returns whether the pollable loop requests this service. */
bool fault_is_of_loop(enum fault fault);

/* Returns the errno of a loop whose creation is refused by this fault. */
int fault_errno(enum fault fault);

/* Sets up the faults. Must be called once, before anything else. */
void faults_init(void);

/*
 * Restarts the count of requests: the n-th (starting at 1; 0: none) and the `count` - 1 after it
 * fail.
 */
void faults_arm(enum fault fault, unsigned n, unsigned count);
void faults_disarm(void);

/* Return the number of requests that have failed since faults_arm; the armed kind. */
unsigned faults_struck(void);
enum fault faults_kind(void);

/* Returns a hook that counts the blocks in use in *out. */
redlock_allocator faults_allocator(size_t *out);

#endif
