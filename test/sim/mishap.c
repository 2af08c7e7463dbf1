#include "mishap.h"

#include "checker.h"
#include "worker.h"

#include "wire/script.h"

#include <inttypes.h>
#include <string.h>

/*
 * A jump that no reading of the clock can hide, however late the answer: a process may be paused
 * for 2 s between its question and the answer, and clocks may have drifted since.
 */
#define LEAST_JUMP (15000 * MS)
#define MOST_JUMP_AHEAD (3600000 * MS)
#define MOST_JUMP_BACK (20000 * MS)

/*
 * Maximum number of backward jumps in a world: they prolong the life of keys, and the world has to
 * wait for their expiry.
 */
#define JUMPS_BACK_MAX 2

static uint64_t draw(struct nemesis *nemesis, uint64_t below) {
    return rng_below(&nemesis->world->rng, below);
}

static bool coin(struct nemesis *nemesis) {
    return rng_chance(&nemesis->world->rng, 500);
}

static bool is_durable(const struct nemesis *nemesis, const struct server *server) {
    return nemesis->plan->durable >> server->master.index & 1;
}

void mishap_stop(struct nemesis *nemesis, struct server *server, uint64_t until) {
    server->is_gone = coin(nemesis);
    server->paused_until = 0;
    server_break(server);
    check_promoted(&server->master); /* it starts as a master */
    server->down_until = until > server->down_until ? until : server->down_until;
    master_start(&server->master, server->down_until);
}

/*
 * Makes a server young: its grants do not count until it has been up, or intact, for the longest
 * TTL.
 */
static void be_young(const struct nemesis *nemesis, struct server *server, uint64_t from) {
    const redlock_options *options = &nemesis->plan->options;
    double slowest = 1 + options->drift / 2;
    uint64_t until = from + (uint64_t)((double)(options->max_ttl_ms * MS) / slowest);
    server->young_until = until > server->young_until ? until : server->young_until;
}

/* ---- restarts ---- */

void mishap_restart(struct nemesis *nemesis, struct server *server) {
    bool keeps = is_durable(nemesis, server);
    TRACE(nemesis->world, "nemesis: node %u restarts %s", server->master.index,
          keeps ? "with all it had" : "empty");
    if (!keeps) {
        master_forget(&server->master);
        check_forgotten(&server->master);
    }
    if (!keeps && coin(nemesis)) { /* the snapshot holds the old marker, and no key */
        master_seem_old(&server->master, nemesis->plan->db);
    }
    mishap_stop(nemesis, server, nemesis->world->now + draw(nemesis, 20 * MS));
    if (!keeps) {
        be_young(nemesis, server, server->down_until);
    }
}

/* ---- clocks ---- */

enum jump_kind { JUMP_ALONE, JUMP_IN_RESTART, JUMP_AFTER_RESTART, JUMP_KIND_COUNT };

static int64_t draw_jump(struct nemesis *nemesis, enum jump_kind kind) {
    if (nemesis->jumps_back < JUMPS_BACK_MAX && (kind == JUMP_AFTER_RESTART || coin(nemesis))) {
        nemesis->jumps_back++;
        return -(int64_t)(LEAST_JUMP + draw(nemesis, MOST_JUMP_BACK - LEAST_JUMP));
    }
    return (int64_t)(LEAST_JUMP + draw(nemesis, MOST_JUMP_AHEAD - LEAST_JUMP));
}

/*
 * Sets a server's clock, and notifies the checker in the order in which a client learns of it: in a
 * restart, the clock before anything else.
 */
static void set_clock(struct nemesis *nemesis, struct server *server, int64_t by, bool is_seen,
                      bool is_young) {
    struct tempo *clock = &server->master.clock;
    TRACE(nemesis->world, "nemesis: the clock of node %u jumps by %" PRId64 " ms",
          server->master.index, by / (int64_t)MS);
    tempo_set(clock, nemesis->world->now, by, clock->ppm);
    nemesis->set_back += by < 0 ? (uint64_t)-by : 0;
    if (by > 0) {
        be_young(nemesis, server, nemesis->world->now);
    }
    check_clock_set(&server->master, by, is_seen, is_young);
}

/* Sets the clock before the server starts, so that its uptime is right. */
static void jump_in_restart(struct nemesis *nemesis, struct server *server, int64_t by) {
    set_clock(nemesis, server, by, true, !is_durable(nemesis, server));
    mishap_restart(nemesis, server);
}

/* Sets the clock back after the server has started, so that its uptime is negative. */
static void jump_after_restart(struct nemesis *nemesis, struct server *server, int64_t by) {
    mishap_restart(nemesis, server);
    set_clock(nemesis, server, by, true, !is_durable(nemesis, server));
}

static void jump(struct nemesis *nemesis, struct server *server, int64_t by, enum jump_kind kind) {
    if (kind == JUMP_ALONE) {
        set_clock(nemesis, server, by, false, false);
    } else if (kind == JUMP_AFTER_RESTART && by < 0) {
        jump_after_restart(nemesis, server, by);
    } else {
        jump_in_restart(nemesis, server, by);
    }
}

/* Replaces a client by one that has not seen the clocks before. */
static void renew_client(struct nemesis *nemesis) {
    struct app *app = &nemesis->apps[draw(nemesis, nemesis->plan->processes)];
    if (!app->process.is_running) {
        app_crash(app, nemesis->world->now + draw(nemesis, 100 * MS));
    }
}

/*
 * Makes clocks jump. Two jumps of one clock could cancel out before a client sees either, so by the
 * second jump no client relies on a key from before the first.
 */
static void set_clocks(struct nemesis *nemesis, unsigned count) {
    const struct plan *plan = nemesis->plan;
    const struct checker *checker = nemesis->world->checker;
    enum jump_kind kind = (enum jump_kind)draw(nemesis, JUMP_KIND_COUNT);
    int64_t by = draw_jump(nemesis, kind);
    unsigned first = (unsigned)draw(nemesis, plan->nodes);
    for (unsigned i = 0; i < count; i++) {
        struct server *server = &nemesis->network->servers[(first + i) % plan->nodes];
        uint64_t *rests = &nemesis->clock_rests_until[server->master.index];
        if (*rests <= nemesis->world->now) {
            *rests = nemesis->world->now + checker->lasts * 3 / 2 + 2 * checker->unseen;
            jump(nemesis, server, by, kind);
        }
    }
    if (kind == JUMP_AFTER_RESTART || coin(nemesis)) {
        renew_client(nemesis);
    }
}

/* ---- memory ---- */

/*
 * Empties a server without ending connections: by FLUSHALL; by SWAPDB, which leaves the old marker
 * of another database; by a REPLICAOF that is revoked at once, which leaves the old marker of
 * another master; or by one to a replica of its own, which leaves its own marker. Only INFO in
 * scripts reveals the latter two.
 */
static void flush(struct nemesis *nemesis, struct server *server) {
    enum { EMPTIED, SWAPPED, FAILED_BACK, ANOTHERS, WAYS };
    static const char *const words[WAYS] = {"is emptied", "is swapped", "fails back",
                                            "has the memory of another"};
    const struct plan *plan = nemesis->plan;
    const struct server *other = &nemesis->network->servers[draw(nemesis, plan->nodes)];
    unsigned way = (unsigned)draw(nemesis, plan->is_reticent ? FAILED_BACK : WAYS);
    TRACE(nemesis->world, "nemesis: node %u %s", server->master.index, words[way]);
    switch (way) {
    case EMPTIED:
        master_forget(&server->master);
        break;
    case SWAPPED:
        master_swap(&server->master, plan->db);
        break;
    case FAILED_BACK:
        master_fail_back(&server->master);
        break;
    default:
        master_forget(&server->master);
        master_seem_another(&server->master, plan->db, &other->master);
        break;
    }
    check_forgotten(&server->master);
    /* To a new client the memory looks old if its marker is one of this run. */
    bool is_young = way == EMPTIED || (way == ANOTHERS && other != server);
    check_flushed(&server->master, is_young);
    be_young(nemesis, server, nemesis->world->now);
}

void mishap_promote(struct nemesis *nemesis, struct server *server) {
    TRACE(nemesis->world, "nemesis: node %u is a master again", server->master.index);
    master_promote(&server->master);
    check_promoted(&server->master);
    be_young(nemesis, server, nemesis->world->now);
}

/*
 * Makes a server a replica that accepts writes; makes a replica take over its master's memory
 * again; or makes it a master again. Clients see the role at their next heartbeat. From then on its
 * grants do not count, and its later losses excuse no hold.
 */
static void change_role(struct nemesis *nemesis, struct server *server) {
    struct network *network = nemesis->network;
    const struct master *other =
        &network->servers[(server->master.index + 1) % nemesis->plan->nodes].master;
    bool was_replica = server->master.store.is_replica;
    if (was_replica && draw(nemesis, 3) == 0) {
        mishap_promote(nemesis, server);
        return;
    }
    TRACE(nemesis->world, "nemesis: node %u has its master's memory", server->master.index);
    master_follow(&server->master, nemesis->plan->db, other);
    check_forgotten(&server->master);
    check_followed(&server->master, !was_replica);
    be_young(nemesis, server, nemesis->world->now);
}

/* Returns a mask of the locks to which this key, or list of readers, belongs; 0: none. */
static uint32_t locks_of(const struct checker *checker, const struct store_key *key) {
    char list[sizeof(checker->keys[0]) + 16];
    for (unsigned i = 0; i < checker->key_count; i++) {
        const struct word name = {key->name, key->name_length};
        snprintf(list, sizeof(list), "%s%s", checker->keys[i], READERS_SUFFIX);
        if (word_is(&name, checker->keys[i]) || word_is(&name, list)) {
            return UINT32_C(1) << i;
        }
    }
    return 0;
}

/* Evicts any key: a lock, the marker, a counter, a list of readers, a writer's intent. */
static void evict(struct nemesis *nemesis, struct server *server) {
    struct master *master = &server->master;
    if (master->store.key_count == 0) {
        return;
    }
    struct store_key *key =
        store_nth(&master->store, (unsigned)draw(nemesis, master->store.key_count));
    uint32_t locks = locks_of(nemesis->world->checker, key);
    TRACE(nemesis->world, "nemesis: node %u evicts %.*s", master->index, (int)key->name_length,
          key->name);
    store_remove(&master->store, key);
    check_evicted(master, locks);
}

/* ---- acquisitions that stay open ---- */

/* The process whose acquisitions stay open, and the one that holds short locks. */
enum { OPENER, HOLDER };

static void look_again(struct nemesis *nemesis) {
    nemesis->strikes_at = nemesis->world->now + 3 * MS;
}

/* Holds the requests of a process to a node. */
static void hold(struct nemesis *nemesis, unsigned process, unsigned node, uint64_t until) {
    nemesis->network->paths[process][node].requests_held_until = until;
}

/* Returns the number of nodes at which the key is set. */
static unsigned count_keys(struct nemesis *nemesis) {
    const char *key = nemesis->world->checker->keys[0];
    unsigned count = 0;
    for (unsigned i = 0; i < nemesis->plan->nodes; i++) {
        struct master *master = &nemesis->network->servers[i].master;
        master->store.db = nemesis->plan->db;
        count += master_find(master, key, strlen(key)) != NULL;
    }
    return count;
}

/*
 * While the lock is free and not requested, lets only one node receive the opener's request soon,
 * and the holder's requests only after that.
 */
static void open_one(struct nemesis *nemesis) {
    const struct plan *plan = nemesis->plan;
    const struct worker *opener = &nemesis->apps[OPENER].workers[0];
    uint64_t now = nemesis->world->now;
    nemesis->stage = STAGE_CLEAR;
    if (count_keys(nemesis) > 0 || opener->is_held || opener->acquires != NULL) {
        look_again(nemesis);
        return;
    }
    nemesis->forgetful = (unsigned)draw(nemesis, plan->nodes);
    nemesis->heard_at = now + 120 * MS;
    nemesis->opened_till = now + (6 + draw(nemesis, 4)) * plan->ttl_least_ms * MS;
    TRACE(nemesis->world, "nemesis: only node %u hears process 0", nemesis->forgetful);
    for (unsigned i = 0; i < plan->nodes; i++) {
        hold(nemesis, OPENER, i, i == nemesis->forgetful ? now : nemesis->opened_till);
        hold(nemesis, HOLDER, i, nemesis->heard_at);
    }
    nemesis->stage = STAGE_OPEN;
    look_again(nemesis);
}

/* Restarts the node that has received the opener's request. */
static void forget_open(struct nemesis *nemesis) {
    if (nemesis->world->now > nemesis->heard_at) {
        nemesis->stage = STAGE_CLEAR;
    } else if (count_keys(nemesis) > 0) {
        mishap_restart(nemesis, &nemesis->network->servers[nemesis->forgetful]);
        nemesis->stage = STAGE_FORGOTTEN;
    }
    look_again(nemesis);
}

/*
 * Once the holder has a lock for which the node that forgot may not count, lets its key expire at
 * one of the other nodes before the opener's request arrives there.
 */
static void let_expire(struct nemesis *nemesis) {
    const struct worker *holder = &nemesis->apps[HOLDER].workers[0];
    uint64_t now = nemesis->world->now;
    unsigned other = (nemesis->forgetful + 1 + (unsigned)draw(nemesis, 2)) % nemesis->plan->nodes;
    if (now < nemesis->opened_till && (!holder->is_held || !check_is_valid(&holder->hold))) {
        look_again(nemesis);
        return;
    }
    TRACE(nemesis->world, "nemesis: node %u does not hear process 1", other);
    hold(nemesis, HOLDER, other, nemesis->opened_till + 100 * MS);
    nemesis->stage = STAGE_NONE;
    nemesis->strikes_at = now + nemesis->plan->options.max_ttl_ms * MS * 6 / 5;
}

/*
 * Takes the steps to an acquisition that stays open while a node that has granted it restarts
 * empty, and another lock, which this node renews, expires elsewhere.
 */
static void keep_open(struct nemesis *nemesis) {
    switch (nemesis->stage) {
    case STAGE_OPEN:
        forget_open(nemesis);
        break;
    case STAGE_FORGOTTEN:
        let_expire(nemesis);
        break;
    default:
        open_one(nemesis);
        break;
    }
}

/* ---- one after the other ---- */

static void lose_memory(struct nemesis *nemesis, unsigned count) {
    const struct plan *plan = nemesis->plan;
    bool is_all = coin(nemesis) || (plan->has_hurry && coin(nemesis));
    count = is_all && coin(nemesis) ? plan->nodes : count;
    unsigned first = (unsigned)draw(nemesis, plan->nodes);
    for (unsigned i = 0; i < count; i++) {
        struct server *server = &nemesis->network->servers[(first + i) % plan->nodes];
        bool is_young = server->young_until > nemesis->world->now;
        if (is_durable(nemesis, server) || (plan->has_hurry && is_young)) {
            continue; /* no lock could be granted there */
        }
        if (is_all) {
            flush(nemesis, server);
        } else {
            evict(nemesis, server);
        }
    }
}

void mishap_strike(struct nemesis *nemesis) {
    const struct plan *plan = nemesis->plan;
    if (plan->has_open) {
        keep_open(nemesis);
        return;
    }
    if (plan->has_replicas) {
        change_role(nemesis, &nemesis->network->servers[draw(nemesis, plan->nodes)]);
        return;
    }
    unsigned count = coin(nemesis) ? 1 : 1 + (unsigned)draw(nemesis, plan->nodes);
    if (plan->has_losses && draw(nemesis, 3) < (plan->has_hurry ? 3 : 1)) {
        lose_memory(nemesis, count);
    } else if (plan->has_jumps && draw(nemesis, 3) == 0) {
        set_clocks(nemesis, count);
    } else {
        mishap_restart(nemesis, &nemesis->network->servers[draw(nemesis, plan->nodes)]);
    }
}
