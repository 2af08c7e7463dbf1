/* The keys that cycles share, and how often each is asked for. */
#ifndef BENCH_KEYS_H
#define BENCH_KEYS_H

#include <stddef.h>

enum keys_kind {
    KEYS_UNIQUE,  /* each slot has a key of its own */
    KEYS_UNIFORM, /* each key is asked for as often as any other */
    KEYS_ZIPF     /* key i is asked for in proportion to 1 / i ^ exponent */
};

struct keys_spec {
    enum keys_kind kind;
    size_t count;
    double exponent;
};

struct keys;

/* Makes keys that threads may share. */
struct keys *keys_create(const struct keys_spec *spec);
void keys_destroy(struct keys *keys); /* takes NULL */

/* A thread's source of picks. */
struct keys_source {
    unsigned short state[3];
};

void keys_begin(struct keys_source *source, size_t seed);

/* Returns the number of a key, drawn at random. */
size_t keys_pick(const struct keys *keys, struct keys_source *source);

#endif
