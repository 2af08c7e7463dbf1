/* The bytes that control a target, read one after the other; zeros follow the last byte. */
#ifndef REDLOCK_FUZZ_INPUT_H
#define REDLOCK_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *next;
    size_t left;
};

static inline uint8_t input_byte(struct input *input) {
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->next++;
}

/* Returns a number below `bound`, which is at most 256. */
static inline unsigned input_below(struct input *input, unsigned bound) {
    return input_byte(input) % bound;
}

/* Returns up to `most` bytes, without a copy. */
static inline const char *input_take(struct input *input, size_t most, size_t *length) {
    const char *start = (const char *)input->next;
    *length = most < input->left ? most : input->left;
    input->next += *length;
    input->left -= *length;
    return start;
}

/* Returns a number: small ones and edge cases are as likely as all others together. */
static inline uint64_t input_number(struct input *input) {
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     50,
                                     1000,
                                     30000,
                                     30001,
                                     UINT32_MAX,
                                     (uint64_t)UINT32_MAX + 1,
                                     UINT64_C(3155760000000),
                                     UINT64_C(3155760000001),
                                     INT64_MAX,
                                     UINT64_MAX - 1,
                                     UINT64_MAX};
    unsigned kind = input_byte(input);
    if (kind < 128) {
        return kind;
    }
    if (kind < 192) {
        return edges[kind % (sizeof(edges) / sizeof(edges[0]))];
    }
    uint64_t number = 0;
    for (unsigned i = 0; i < 1 + kind % 8; i++) {
        number = number << 8 | input_byte(input);
    }
    return number;
}

#endif
