#include "master.h"

#include "wire/script.h"

#include <redlock.h>
#include <stdio.h>
#include <string.h>

/* Worlds begin at 1000 s. */
#define LONG_MS 500000

static uint64_t read_clock(const void *owner) {
    const struct master *master = owner;
    return tempo_read(&master->clock, master->world->now);
}

static void name_run(struct master *master) {
    snprintf(master->store.run_id, sizeof(master->store.run_id), "%020u%020u", master->index,
             master->run);
}

void master_init(struct master *master, struct world *world, unsigned index) {
    *master = (struct master){.world = world, .index = index};
    master->clock = (struct tempo){.true_base = world->now, .own_base = world->now};
    store_init(&master->store, read_clock, master);
    name_run(master);
}

void master_start(struct master *master, uint64_t at) {
    master->store.scripts = 0;
    master->store.is_replica = false;
    master->run++;
    master->store.started_ms = (int64_t)(tempo_read(&master->clock, at) / MS);
    name_run(master);
}

static bool is_counter(const struct store_key *key) {
    return store_key_ends(key, COUNTER_SUFFIX);
}

void master_forget(struct master *master) {
    store_forget(&master->store, NULL);
}

void master_forget_locks(struct master *master) {
    store_forget(&master->store, is_counter);
}

static bool is_marker(const struct store_key *key) {
    const struct word name = {key->name, key->name_length};
    return word_is(&name, REDLOCK_MARKER_KEY);
}

void master_fail_back(struct master *master) {
    store_forget(&master->store, is_marker);
    master->store.promotions++;
}

void master_swap(struct master *master, unsigned db) {
    master_forget(master);
    master->store.db = db;
    store_put_marker(&master->store, master->store.run_id, LONG_MS);
}

void master_finish(struct master *master) {
    store_finish(&master->store);
}

uint64_t master_keeps_until(const struct master *master, int64_t expires_ms) {
    if (expires_ms < 0) {
        return NEVER;
    }
    return tempo_true(&master->clock, ((uint64_t)expires_ms + 1) * MS);
}

void master_seem_old(struct master *master, unsigned db) {
    master->store.started_ms = master_now_ms(master) - LONG_MS;
    master->store.db = db;
    store_put_marker(&master->store, master->store.run_id, LONG_MS);
}

void master_seem_another(struct master *master, unsigned db, const struct master *other) {
    master->store.db = db;
    store_put_marker(&master->store, other->store.run_id, LONG_MS);
}

void master_follow(struct master *master, unsigned db, const struct master *other) {
    master_forget(master);
    master_seem_another(master, db, other);
    master->store.promotions += !master->store.is_replica; /* the history is now the other one's */
    master->store.is_replica = true;
}

void master_promote(struct master *master) {
    master->store.promotions += master->store.is_replica;
    master->store.is_replica = false;
}
