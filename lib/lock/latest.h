/*
 * The latest request, with the terms and the kind derived from it. Most requests of a client differ
 * only in their keys and callbacks: for these nothing else is checked or derived again.
 */
#ifndef REDLOCK_LOCK_LATEST_H
#define REDLOCK_LOCK_LATEST_H

#include "lock/terms.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct latest {
    redlock_request request;
    const struct lease_terms *terms; /* a reference; NULL: no request yet */
    uint8_t kind;                    /* kind_number */
};

/*
 * Returns whether a request equals the latest one except for its key and its callbacks. Both must
 * have one key. `given` may come from another version of the header. Always false for permits,
 * which bound the length of keys.
 */
static inline bool latest_is_like(const struct latest *latest, const redlock_request *given) {
    const redlock_request *last = &latest->request;
    return latest->terms != NULL && given->size == sizeof(*given) && given->keys == NULL &&
           given->key_count == 0 && given->ttl_ms == last->ttl_ms &&
           given->wait_ms == last->wait_ms && given->retries == last->retries &&
           given->min_validity_ms == last->min_validity_ms && given->watchdog == last->watchdog &&
           given->max_hold_ms == last->max_hold_ms && given->fenced == last->fenced &&
           given->min_hold_ms == last->min_hold_ms && given->lock_delay_ms == last->lock_delay_ms &&
           given->wait_replicas == last->wait_replicas && given->permits == 0 &&
           last->permits == 0 && given->mode == last->mode && given->watch_key == last->watch_key;
}

/* Records a request with one key, its terms, and its kind. */
static inline void latest_record(struct latest *latest, struct terms_table *table,
                                 const redlock_request *request, const struct lease_terms *terms,
                                 uint8_t kind) {
    const struct lease_terms *before = latest->terms;
    *latest = (struct latest){.request = *request, .terms = terms_share(terms), .kind = kind};
    if (before != NULL) {
        terms_drop(table, before);
    }
}

#endif
