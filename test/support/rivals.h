/*
 * Clients on one loop that want locks of which one at a time can be held: each acquires its lock
 * over and over, and stays for a round trip.
 */
#ifndef REDLOCK_TEST_RIVALS_H
#define REDLOCK_TEST_RIVALS_H

#include "harness.h"

struct rivals;

struct rivals_options {
    redlock_request request;
    unsigned turns;             /* of each client */
    bool hastes;                /* releases at once instead of staying */
    bool (*is_over)(void *arg); /* no turn begins any more; NULL: only turns end the rivalry */
    /* Runs in the callback of each acquisition, before the release, unless NULL. */
    void (*on_in)(unsigned client, unsigned turn, void *arg);
    void *arg; /* of both */
};

/* Makes rivals, who do not begin yet. Ends with the fixture. */
struct rivals *rivals_create(struct fixture *f, const struct rivals_options *options);

/* Begins the turns of a client, which gets the next number. */
void rivals_begin(struct rivals *rivals, redlock_client *client);

/* Begins the turns of a client as rivals_begin does, for a request of its own. */
void rivals_begin_for(struct rivals *rivals, redlock_client *client,
                      const redlock_request *request);

/* Returns whether rivals have begun, and all of them have had their turns, and have released. */
bool rivals_are_done(void *rivals);

/* Runs the loop until all have had their turns, and have released. */
void wait_rivals(struct fixture *f, struct rivals *rivals);

/* Returns how often a rival came in while another one's lock was valid, or with an old fence. */
unsigned rivals_intrusions(const struct rivals *rivals);

#endif
