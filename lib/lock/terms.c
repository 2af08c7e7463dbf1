#include "lock/terms.h"

#include <stdbool.h>
#include <stdint.h>

/* The most terms of a list that are compared: if each lock has its own, a search is a waste. */
#define SEARCH_MAX 8

struct terms {
    LIST_ENTRY(terms) link;
    struct lease_terms terms;
    uint32_t references;
};

static const struct pool_kind terms_kind = {.size = sizeof(struct terms), .max_spares = 64};

void terms_init(struct terms_table *table, const redlock_allocator *allocator) {
    pool_init(&table->pool, allocator, &terms_kind, NULL);
    for (unsigned i = 0; i < TERMS_LISTS; i++) {
        LIST_INIT(&table->lists[i]);
    }
}

void terms_finish(struct terms_table *table) {
    pool_finish(&table->pool);
}

/* Returns the list for terms, by a hash of the durations that differ most often. */
static struct terms_list *terms_list_of(struct terms_table *table,
                                        const struct lease_terms *terms) {
    uint64_t sum = terms->ttl + terms->wait * 3 + terms->max_hold * 5;
    /* Fibonacci hashing: the top 6 bits, for 64 lists. */
    return &table->lists[(sum * UINT64_C(0x9e3779b97f4a7c15)) >> 58 & (TERMS_LISTS - 1)];
}

static bool have_equal_waits(const struct lease_terms *one, const struct lease_terms *other) {
    return one->wait == other->wait && one->retries == other->retries &&
           one->queues == other->queues && one->reservation == other->reservation &&
           one->trusts_pushes == other->trusts_pushes && one->permits == other->permits &&
           one->is_reader == other->is_reader;
}

/* Compares all terms except the client's own, which all locks of a table share. */
static bool are_equal(const struct lease_terms *one, const struct lease_terms *other) {
    return one->ttl == other->ttl && have_equal_waits(one, other) &&
           one->min_validity == other->min_validity && one->watchdog == other->watchdog &&
           one->max_hold == other->max_hold && one->fenced == other->fenced &&
           one->min_hold == other->min_hold && one->lock_delay == other->lock_delay &&
           one->watches == other->watches && one->replicas == other->replicas;
}

const struct lease_terms *terms_hold(struct terms_table *table, const struct lease_terms *terms) {
    struct terms_list *list = terms_list_of(table, terms);
    struct terms *kept = LIST_FIRST(list);
    for (unsigned i = 0; i < SEARCH_MAX && kept != NULL; i++, kept = LIST_NEXT(kept, link)) {
        if (are_equal(&kept->terms, terms)) {
            kept->references++;
            return &kept->terms;
        }
    }
    kept = pool_take(&table->pool); /* new, or too far back in the list to be found */
    if (kept == NULL) {
        return NULL;
    }
    *kept = (struct terms){.terms = *terms, .references = 1};
    LIST_INSERT_HEAD(list, kept, link);
    return &kept->terms;
}

static struct terms *kept_of(const struct lease_terms *terms) {
    return (struct terms *)(void *)((char *)terms - offsetof(struct terms, terms));
}

const struct lease_terms *terms_share(const struct lease_terms *terms) {
    kept_of(terms)->references++;
    return terms;
}

void terms_drop(struct terms_table *table, const struct lease_terms *terms) {
    struct terms *kept = kept_of(terms);
    if (--kept->references == 0) {
        LIST_REMOVE(kept, link);
        pool_put(&table->pool, kept);
    }
}
