/*
 * A way to each of the masters on which a test decides the fate of the messages that tell waiters
 * of a key that was passed on to them: lost, doubled, or late. Answers and probes go through,
 * unless everything is held.
 */
#ifndef REDLOCK_TEST_COURIER_H
#define REDLOCK_TEST_COURIER_H

#include "harness.h"
#include "relay.h"

struct courier;

/* Makes relays to all of the fixture's masters. Ends with the fixture, after the clients. */
struct courier *courier_create(struct fixture *f);

/* Returns URIs of nodes that are trusted at once. Valid as long as the courier. */
const char *const *courier_uris(const struct courier *courier);

/* Makes a patient client that reaches the masters by the courier, with or without guards. */
redlock_client *courier_client(struct fixture *f, const struct courier *courier,
                               redlock_guards guards);

/* Loses so many of a hundred pushes from now on, chosen by a seed of its own. */
void courier_lose(struct courier *courier, unsigned percent);

/* Delivers each push twice from now on. */
void courier_double(struct courier *courier);

/* Keeps a copy of each push from now on; delivers the copies, and runs the loop until they are. */
void courier_keep_copies(struct courier *courier);
void courier_deliver_copies(struct fixture *f, struct courier *courier);

/* Holds all bytes from one side, or passes them. */
void courier_hold(struct courier *courier, enum side from);
void courier_pass(struct courier *courier, enum side from);

/* Runs the loop until all bytes that came from the masters have been delivered. */
void wait_delivered(struct fixture *f, struct courier *courier);

size_t courier_pushes(const struct courier *courier); /* pushes so far, lost ones among them */
size_t courier_lost(const struct courier *courier);   /* pushes lost so far */

#endif
