/*
 * A relay to each of the masters that lets a test decide the fate of pushes, the messages that
 * grant a waiter a key: lost, doubled or late. Answers and probes pass, unless everything is held.
 */
#ifndef REDLOCK_TEST_PUSH_RELAY_H
#define REDLOCK_TEST_PUSH_RELAY_H

#include "harness.h"
#include "relay.h"

struct push_relay;

/* Makes relays to all the fixture's masters. Ends with the fixture, after the clients. */
struct push_relay *push_relay_create(struct fixture *f);

/* Returns URIs of nodes that are trusted at once. Valid as long as the push relay. */
const char *const *push_relay_uris(const struct push_relay *push_relay);

/*
 * Makes a patient client that reaches the masters through the push relay, with or without guards.
 */
redlock_client *push_relay_client(struct fixture *f, const struct push_relay *push_relay,
                                  redlock_guards guards);

/* Loses `percent` of the pushes from now on, chosen by its own fixed seed. */
void push_relay_lose(struct push_relay *push_relay, unsigned percent);

/* Delivers each push twice from now on. */
void push_relay_double(struct push_relay *push_relay);

/*
 * Keeps a copy of each push from now on; delivers the copies, and runs the loop until they are
 * delivered.
 */
void push_relay_keep_copies(struct push_relay *push_relay);
void push_relay_deliver_copies(struct fixture *f, struct push_relay *push_relay);

/* Hold all bytes from one side; pass them. */
void push_relay_hold(struct push_relay *push_relay, enum side from);
void push_relay_pass(struct push_relay *push_relay, enum side from);

/* Runs the loop until all bytes that came from the masters have been delivered. */
void wait_delivered(struct fixture *f, struct push_relay *push_relay);

size_t
push_relay_pushes(const struct push_relay *push_relay);      /* pushes so far, lost ones included */
size_t push_relay_lost(const struct push_relay *push_relay); /* pushes lost so far */

#endif
