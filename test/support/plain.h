/*
 * Foreign clients as people write them with redis-cli: they repeat SET NX PX at all masters, and
 * release by compare-and-delete. Each call blocks until the masters have answered.
 */
#ifndef REDLOCK_TEST_PLAIN_H
#define REDLOCK_TEST_PLAIN_H

#include "harness.h"

struct plain;

struct plain_options {
    const char *key;
    uint64_t ttl_ms;
    unsigned poll_ms; /* the delay between two tries, and between acquisition and release */
    bool stays;       /* keeps the key until plain_end */
    /* Run when the key was acquired; right before it is released. Unless NULL. */
    void (*on_in)(void *arg);
    void (*on_out)(void *arg);
    void *arg;
};

/* Makes a client that contends for the key on the fixture's loop until plain_end. */
struct plain *plain_begin(struct fixture *f, const struct plain_options *options);

/* Releases the key, if held, and stops contending. */
void plain_end(struct plain *plain);

/* Returns how often the client has held the key. */
size_t plain_turns(const struct plain *plain);

/* Runs the loop until the client has held the key `turns` times. */
void wait_plain_turns(struct fixture *f, const struct plain *plain, size_t turns);

#endif
