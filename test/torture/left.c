#include "left.h"

#include "wire/script.h"

#include <stdio.h>

/* Returns the number of waiters in a queue; a member "open <ms>" belongs to no client. */
static unsigned count_waiters(const struct store_key *queue) {
    const struct member *member = NULL;
    unsigned count = 0;
    while ((member = set_next(&queue->set, member)) != NULL) {
        count += strncmp(member->name, "open ", 5) != 0;
    }
    return count;
}

/*
 * Returns whether the key may outlive locks: a counter, an intent, the flag and the
 * list of queues, a queue without waiters.
 */
static bool may_stay(const struct store_key *key) {
    bool is_empty_queue = store_key_ends(key, QUEUE_SUFFIX) && count_waiters(key) == 0;
    const struct word name = {key->name, key->name_length};
    bool is_of_queues = word_is(&name, WAITING_KEY) || word_is(&name, QUEUES_KEY);
    return is_empty_queue || is_of_queues || store_key_ends(key, COUNTER_SUFFIX) ||
           store_key_ends(key, WRITER_SUFFIX);
}

/* The marker never expires, so it does not count as a lock. */
bool left_is_held(const struct store *store, const struct store_key *key) {
    return key->expires_ms >= store_now_ms(store) && !may_stay(key);
}

unsigned left_waiters(struct store *store, const char *key) {
    char name[128];
    int length = snprintf(name, sizeof(name), "%s" QUEUE_SUFFIX, key);
    const struct store_key *queue = store_find(store, name, (size_t)length);
    return queue != NULL ? count_waiters(queue) : 0;
}
