#include "floor.h"

#include "memory.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void floor_die(const char *uri, const char *what) {
    fprintf(stderr, "redlock-bench: %s: %s\n", uri, what);
    exit(EXIT_FAILURE);
}

struct floor_slot *floor_slots(size_t first, size_t count) {
    struct floor_slot *slots = memory_take(count, sizeof(*slots));

    if (sodium_init() < 0) {
        floor_die("floor", "no random numbers");
    }
    for (size_t i = 0; i < count; i++) {
        load_format_key(slots[i].key, first + i);
        slots[i].key_length = strlen(slots[i].key);
    }
    return slots;
}

struct address floor_address(const char *uri) {
    struct address address;
    const char *problem = address_parse(&address, uri);

    if (problem != NULL) {
        floor_die(uri, problem);
    }
    return address;
}
