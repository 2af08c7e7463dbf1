/*
 * Clients on one loop that contend for locks of which only one can be held at a time: each acquires
 * its lock again and again, and keeps it for a round trip.
 */
#ifndef REDLOCK_TEST_RIVALS_H
#define REDLOCK_TEST_RIVALS_H

#include "harness.h"

struct rivals;

struct rivals_options {
    redlock_request request;
    unsigned turns; /* of each client */
    bool hastes;    /* releases at once instead of a round trip later */
    /* returns whether no more turns may begin; NULL: only turns end the rivalry */
    bool (*is_over)(void *arg);
    /* Runs in the callback of each acquisition, before the release, unless NULL. */
    void (*on_in)(unsigned client, unsigned turn, void *arg);
    void *arg; /* argument of both callbacks */
};

/* Makes rivals that have not begun yet. Ends with the fixture. */
struct rivals *rivals_create(struct fixture *f, const struct rivals_options *options);

/* Begins the turns of a client, which gets the next number. */
void rivals_begin(struct rivals *rivals, redlock_client *client);

/* Begins the turns of a client as rivals_begin does, for a request of its own. */
void rivals_begin_for(struct rivals *rivals, redlock_client *client,
                      const redlock_request *request);

/* Returns whether rivals have begun, and all have had their turns and released. */
bool rivals_are_done(void *rivals);

/* Runs the loop until all rivals have had their turns and released. */
void wait_rivals(struct fixture *f, struct rivals *rivals);

/*
 * Returns how often a rival acquired its lock while another one's was valid, or with an old fence.
 */
unsigned rivals_intrusions(const struct rivals *rivals);

#endif
