/*
 * The event loop of an application, to which the tests attach loops of the library. There is one
 * implementation for each kind of loop, outer_*.c; a test program is linked with one of them. The
 * functions assert that the loop's own library reports no error.
 */
#ifndef REDLOCK_TEST_OUTER_H
#define REDLOCK_TEST_OUTER_H

#include <redlock/loop.h>
#include <stdbool.h>
#include <stddef.h>

#define OUTER_ADAPTERS 2 /* maximum number of loops of the library on one outer loop */

struct outer;

struct outer *outer_open(void);
void outer_close(struct outer *outer);

/*
 * Attaches a loop of the library, with the adapter under test, as number 0 or 1. Returns NULL, with
 * errno, if the adapter fails.
 */
redlock_loop *outer_attach(struct outer *outer, size_t number);
void outer_detach(struct outer *outer, size_t number);

/* Calls the adapter's functions with arguments that are refused, or ignored. */
void outer_refuses(void);

/* Waits until something happens, and serves it. */
void outer_turn(struct outer *outer);

/* Returns whether nothing keeps the outer loop running. */
bool outer_is_empty(struct outer *outer);

/* Starts a timer of the application, which calls `on_tick` each millisecond; stops it. */
void outer_start_timer(struct outer *outer, void (*on_tick)(void *arg), void *arg);
void outer_stop_timer(struct outer *outer);

/* Whether outer_turn may be called inside a callback. */
extern const bool outer_can_nest;

/*
 * Serves the outer loop in a fork() child, without waiting. Returns whether it gets quiet, although
 * the library has something to do in the parent: an outer loop that cannot be used in a child is
 * quiet.
 */
bool outer_is_quiet_in_child(struct outer *outer);

#endif
