/* The keys that cycles share, and how often each is requested. */
#ifndef BENCH_KEYS_H
#define BENCH_KEYS_H

#include <stddef.h>

enum keys_kind {
    KEYS_UNIQUE,  /* each slot has a key of its own */
    KEYS_UNIFORM, /* all keys are requested equally often */
    KEYS_ZIPF     /* key i is requested in proportion to 1 / i ^ exponent */
};

struct keys_spec {
    enum keys_kind kind;
    size_t count;
    double exponent;
};

struct keys;

/* Creates keys that threads may share. */
struct keys *keys_create(const struct keys_spec *spec);
void keys_destroy(struct keys *keys); /* NULL is allowed */

/* A thread's random source. */
struct keys_source {
    unsigned short state[3];
};

void keys_begin(struct keys_source *source, size_t seed);

/* Returns the number of a key, drawn at random. */
size_t keys_pick(const struct keys *keys, struct keys_source *source);

#endif
