#include "keys.h"

#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct keys {
    size_t count;
    double
        *sums; /* share of the keys up to each, of all; NULL: each is drawn as often as any other */
};

static void fill_sums(struct keys *keys, double exponent) {
    double sum = 0;

    for (size_t i = 0; i < keys->count; i++) {
        sum += pow((double)(i + 1), -exponent);
        keys->sums[i] = sum;
    }
    for (size_t i = 0; i < keys->count; i++) {
        keys->sums[i] /= sum;
    }
}

struct keys *keys_create(const struct keys_spec *spec) {
    struct keys *keys = memory_take(1, sizeof(*keys));

    keys->count = spec->count;
    if (spec->kind == KEYS_ZIPF) {
        keys->sums = memory_take(spec->count, sizeof(*keys->sums));
        fill_sums(keys, spec->exponent);
    }
    return keys;
}

void keys_destroy(struct keys *keys) {
    if (keys != NULL) {
        free(keys->sums);
        free(keys);
    }
}

void keys_begin(struct keys_source *source, size_t seed) {
    *source = (struct keys_source){
        {0x330e, (unsigned short)(seed & 0xffff), (unsigned short)(seed >> 16 & 0xffff)}};
}

size_t keys_pick(const struct keys *keys, struct keys_source *source) {
    double share = erand48(source->state);
    size_t low = 0;
    size_t high = keys->count - 1;

    if (keys->sums == NULL) {
        return (size_t)(share * (double)keys->count);
    }
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (keys->sums[middle] > share) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}
