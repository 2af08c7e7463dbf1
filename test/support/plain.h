/*
 * Foreign clients, as people write them with redis-cli: SET NX PX at all masters, over and
 * over, and compare-and-delete. Each call blocks until the masters have answered.
 */
#ifndef REDLOCK_TEST_PLAIN_H
#define REDLOCK_TEST_PLAIN_H

#include "harness.h"

struct plain;

struct plain_options {
    const char *key;
    uint64_t ttl_ms;
    unsigned poll_ms; /* the delay between two tries, and between coming in and going out */
    bool stays;       /* keeps the key until plain_end */
    /* Run when the key is held, and right before it is given back, unless NULL. */
    void (*on_in)(void *arg);
    void (*on_out)(void *arg);
    void *arg;
};

/* Makes a client that contends for the key from now on, on the fixture's loop, until its end. */
struct plain *plain_begin(struct fixture *f, const struct plain_options *options);

/* Gives the key back, if held, and contends no more. */
void plain_end(struct plain *plain);

/* Returns how often the client has held the key. */
size_t plain_turns(const struct plain *plain);

/* Runs the loop until the client has held the key so many times. */
void wait_plain_turns(struct fixture *f, const struct plain *plain, size_t turns);

#endif
