/*
 * Clients on one loop that want one key: each acquires the key over and over, and stays for a round
 * trip.
 */
#ifndef REDLOCK_TEST_RIVALS_H
#define REDLOCK_TEST_RIVALS_H

#include "harness.h"

struct rivals;

struct rivals_options {
    redlock_request request;
    unsigned turns; /* of each client */
    bool hastes;    /* releases at once instead of staying */
    /* Runs in the callback of each acquisition, before the release, unless NULL. */
    void (*on_in)(unsigned client, unsigned turn, void *arg);
    void *arg;
};

/* Makes rivals, who do not begin yet. Ends with the fixture. */
struct rivals *rivals_create(struct fixture *f, const struct rivals_options *options);

/* Begins the turns of a client, which gets the next number. */
void rivals_begin(struct rivals *rivals, redlock_client *client);

/* Runs the loop until all have had their turns, and have released. */
void wait_rivals(struct fixture *f, struct rivals *rivals);

/* Returns how often a rival came in while another one's lock was valid, or with an old fence. */
unsigned rivals_intrusions(const struct rivals *rivals);

#endif
