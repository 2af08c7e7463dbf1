/*
 * The happy path: pending_releases_add appends a copy of a release; a retry (round/retry.c) sends
 * the first one and drops it. So each is sent again once, the oldest first.
 *
 * Failures: a release that fails again is added again, at the end. At a bound, or without memory, a
 * release is refused. Expired ones are swept out to make room. A sweep visits all pending releases,
 * so it is rare: it needs a bound to be reached, or the number to have doubled since the last
 * sweep, and at least one that may have expired.
 */
#include "node/pending_releases.h"

#include "base/memory.h"
#include "base/nanos.h"

#include <string.h>

/* The least number of pending releases that is worth a sweep. */
#define SWEEP_LEAST 64

void pending_releases_init(struct pending_releases *pending, const redlock_allocator *allocator,
                           size_t max_bytes) {
    pending->allocator = allocator;
    pending->count = pending->bytes = 0;
    pending->max_bytes =
        max_bytes > PENDING_RELEASES_BYTES_LEAST ? max_bytes : PENDING_RELEASES_BYTES_LEAST;
    pending->sweep_at = SWEEP_LEAST;
    pending->first_until = NANOS_NEVER;
    STAILQ_INIT(&pending->list);
}

void pending_releases_finish(struct pending_releases *pending) {
    while (pending->count > 0) {
        pending_releases_drop_first(pending);
    }
}

static size_t size_of(const struct release *release) {
    size_t size = sizeof(struct pending_release);
    for (const struct key *key = release->key; key != NULL; key = key->next) {
        size += sizeof(*key) + key->length + 1;
    }
    return size;
}

static bool has_room_for(const struct pending_releases *pending, size_t size) {
    return pending->count < PENDING_RELEASES_MAX && size <= pending->max_bytes &&
           pending->bytes <= pending->max_bytes - size;
}

bool pending_releases_add(struct pending_releases *pending, const struct release *release,
                          uint64_t now) {
    size_t size = size_of(release);
    bool is_due = pending->count >= pending->sweep_at || !has_room_for(pending, size);
    if (is_due && pending->first_until <= now) { /* otherwise a sweep would find nothing */
        pending_releases_drop_expired(pending, now);
        size_t twice = pending->count < SWEEP_LEAST / 2 ? SWEEP_LEAST : 2 * pending->count;
        pending->sweep_at = twice < PENDING_RELEASES_MAX ? twice : PENDING_RELEASES_MAX;
    }
    struct pending_release *item =
        has_room_for(pending, size) ? memory_alloc(pending->allocator, sizeof(*item)) : NULL;
    if (item == NULL) {
        return false;
    }
    item->release = *release;
    item->release.key = key_hold(release->key);
    memcpy(item->token, release->token, sizeof(item->token));
    item->release.token = item->token;
    pending->first_until = nanos_min(pending->first_until, release->until);
    STAILQ_INSERT_TAIL(&pending->list, item, link);
    pending->count++;
    pending->bytes += size;
    return true;
}

void pending_releases_drop_expired(struct pending_releases *pending, uint64_t now) {
    pending->first_until = NANOS_NEVER;
    for (size_t left = pending->count; left > 0; left--) {
        struct pending_release *item = STAILQ_FIRST(&pending->list);
        if (item->release.until <= now) {
            pending_releases_drop_first(pending);
        } else { /* moved to the end: after all moves the order is as before */
            pending->first_until = nanos_min(pending->first_until, item->release.until);
            STAILQ_REMOVE_HEAD(&pending->list, link);
            STAILQ_INSERT_TAIL(&pending->list, item, link);
        }
    }
}

void pending_releases_drop_first(struct pending_releases *pending) {
    struct pending_release *item = STAILQ_FIRST(&pending->list);
    STAILQ_REMOVE_HEAD(&pending->list, link);
    pending->count--;
    pending->bytes -= size_of(&item->release);
    key_drop(item->release.key);
    memory_free(pending->allocator, item);
}
