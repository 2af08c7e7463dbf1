/*
 * Services that the library asks others for, and that are refused at a chosen place: the n-th time
 * that it asks, and the times right after that. All of them are counted in the program itself: its
 * own allocations come through the allocator hook, event_add and sodium_init are wrapped by the
 * linker, and the program defines the socket and connect that hiredis calls.
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
    FAULT_COUNT
};

/* "alloc", "event_add", ... */
const char *fault_name(enum fault fault);

/* Why this one cannot be had here; NULL when it can. */
const char *fault_lack(enum fault fault);

/* Once, before all else. */
void faults_init(void);

/* Counts anew from here: the n-th request (from 1; 0: none) and `count` - 1 after it fail. */
void faults_arm(enum fault fault, unsigned n, unsigned count);
void faults_disarm(void);

/* How many requests have failed since faults_arm, and of which kind. */
unsigned faults_struck(void);
enum fault faults_kind(void);

/* A hook that adds up in *out how many blocks are not freed. */
redlock_allocator faults_allocator(size_t *out);

#endif
