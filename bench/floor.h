/* The parts that both floors share. A floor ends the program on any error. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "address.h"
#include "load.h"

#include <stddef.h>

#define FLOOR_TOKEN_LENGTH 40
#define FLOOR_SHA_LENGTH 40

struct floor_slot {
    char key[LOAD_KEY_SIZE];
    size_t key_length;
    char token[FLOOR_TOKEN_LENGTH + 1];
};

/* Ends the program after a message on stderr. */
_Noreturn void floor_die(const char *uri, const char *what);

/*
 * Creates slots with keys numbered from `first` on, and initializes libsodium for their tokens. The
 * caller frees the slots.
 */
struct floor_slot *floor_slots(size_t first, size_t count);

/* Reads the address of a node. */
struct address floor_address(const char *uri);

#endif
