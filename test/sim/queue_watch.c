#include "queue_watch.h"

#include "checker.h"
#include "network.h"

#include "lock/lock.h"
#include "node/members.h"
#include "node/node.h"
#include "round/operation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Time within which a client that could run has asked. */
#define SOON (2 * QUEUE_WATCH_MS * MS)

void queue_watch_init(struct queue_watch *watch) {
    memset(watch, 0xff, sizeof(*watch)); /* NO_TOKEN */
}

/* ---- entries ---- */

static bool is_waiting(const redlock_lock *lock) {
    return lock != NULL && lock->lease.state == LEASE_QUEUED && lock->operation != NULL &&
           lock->operation->round.kind == ROUND_QUEUE &&
           lock->operation->round.verdict == ROUND_OPEN;
}

/* Returns whether a lock may ask for entries: after its wait it only awaits answers. */
static bool may_ask(const struct app *app, const redlock_lock *lock) {
    uint64_t now = tempo_read(&app->process.clock, app->checker->world->now);
    return is_waiting(lock) && lock->lease.trying.give_up_at > now;
}

/* Returns the mark of a ready node's channel that was not sent with the token; 0: none. */
static uint32_t unasked_channel(const redlock_lock *lock, const struct token *token) {
    const struct members *members = lock->locks->members;
    const struct round *round = &lock->operation->round;
    if (members->context->patience.is_opening) { /* no node is asked before a quorum can be */
        return 0;
    }
    for (uint32_t rest = round->members; rest != 0; rest &= rest - 1) {
        unsigned slot = (unsigned)__builtin_ctz(rest);
        const struct node *node = members->nodes[slot];
        if (node == NULL || !channel_is_ready(&node->channel) ||
            round->votes[slot] == REDLOCK_VOTE_UNTRUSTED) { /* untrusted nodes are not asked */
            continue;
        }
        const char *name = channel_name(&node->channel);
        uint32_t mark = check_channel_mark(name, strlen(name));
        if (!check_has_asked(token, mark)) {
            return mark;
        }
    }
    return 0;
}

static void look_at(struct unasked *unasked, const struct app *app, const redlock_lock *lock) {
    struct checker *checker = app->checker;
    uint64_t now = checker->world->now;
    uint32_t number = may_ask(app, lock) ? check_token_of_lock(checker, lock) : NO_TOKEN;
    uint32_t channel = number != NO_TOKEN ? unasked_channel(lock, &checker->tokens[number]) : 0;
    if (channel == 0) {
        unasked->token = NO_TOKEN;
    } else if (unasked->token != number || unasked->channel != channel ||
               checker->disturbed_at[app->process.index] >= unasked->since) {
        *unasked = (struct unasked){.token = number, .channel = channel, .since = now};
    } else if (now - unasked->since >= SOON) {
        violate(checker->world, INVARIANT_ORDER,
                "process %u has not asked a node for an entry for %" PRIu64
                " ms, whose messages arrive (token %" PRIu32 ")",
                app->process.index, (now - unasked->since) / MS, number);
    }
}

/* ---- clocks and heartbeats ---- */

/* Checks that a client's bound of a node's clock is no tighter than the node's heartbeats prove. */
static void look_at_clock(const struct app *app, const struct node *node, unsigned server) {
    const struct event_base *process = &app->process;
    const struct checker *checker = app->checker;
    uint64_t now = tempo_read(&process->clock, checker->world->now);
    const struct trust *trust = &node->guard.trust;
    int64_t proven = check_proven_ahead(checker, process, server, now);
    int64_t ahead = trust->clock_high + check_drifted(checker, now - trust->clock_at);
    if (trust->has_clock && ahead + (int64_t)MS / 1000 < proven) {
        violate(checker->world, INVARIANT_QUORUM,
                "process %u takes the clock of node %u for %lld us earlier than may be",
                process->index, server, (long long)(proven - ahead) / 1000);
    }
}

/* The longest age of a heartbeat while a request waits: pushes count only with a newer one. */
#define AGE_MAX (GUARD_WAITING_NANOS + CHANNEL_BEAT_NANOS)

/* A wait that is longer costs less if a push that comes after it is asked about. */
#define NEW_WAIT (4000 * MS)

/*
 * Checks that a client that has not waited for pushes for long sends heartbeats, even if it sends
 * nothing else.
 */
static void look_at_beats(const struct app *app, const struct node *node, unsigned server) {
    const struct event_base *process = &app->process;
    const struct checker *checker = app->checker;
    uint64_t age = tempo_read(&process->clock, checker->world->now) - node->guard.beaten_at;
    if (checker->has_guards && !process->is_paused && process->failed == 0 &&
        channel_is_ready(&node->channel) && age > AGE_MAX &&
        checker->world->now - checker->disturbed_at[process->index] > AGE_MAX) {
        violate(checker->world, INVARIANT_LIVENESS,
                "process %u waits, and has not asked node %u for its clock for %" PRIu64 " ms",
                process->index, server, age / MS);
    }
}

static void look_at_nodes(const struct app *app, const redlock_lock *lock) {
    const struct members *members = lock->locks->members;
    uint64_t now = tempo_read(&app->process.clock, app->checker->world->now);
    bool is_new = now - lock->lease.begun_at < NEW_WAIT;
    for (unsigned slot = 0; slot < REDLOCK_MAX_NODES; slot++) {
        const struct node *node = members->nodes[slot];
        const char *port = node != NULL ? strrchr(node_name(node), ':') : NULL;
        if (port != NULL) {
            unsigned server = (unsigned)strtoul(port + 1, NULL, 10) - SIM_FIRST_PORT;
            look_at_clock(app, node, server);
            if (is_new) {
                look_at_beats(app, node, server);
            }
        }
    }
}

void queue_watch_look(struct queue_watch *watch, const struct app *app) {
    const struct event_base *process = &app->process;
    bool has_client = app->client != NULL && !app->is_starting && !app->is_closing;
    bool is_excused = process->is_paused || process->failed > 0 || app->checker->has_caps ||
                      app->checker->clocks_jump; /* a timer may be late after a jump back */
    for (unsigned i = 0; i < app->plan->workers; i++) {
        struct unasked *unasked = &watch->unasked[process->index][i];
        const redlock_lock *lock = has_client ? app->workers[i].lock : NULL;
        if (is_waiting(lock) && !app->checker->clocks_jump) {
            look_at_nodes(app, lock);
        }
        look_at(unasked, app, is_excused ? NULL : lock);
    }
}
