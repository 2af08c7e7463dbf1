/*
 * Servers that lose keys, or whose clocks jump, while guards keep promise 1. A server that guards
 * distrust still backs all that it had granted before, but its new grants do not count
 * (`young_until`). A loss that guards cannot detect yet, or cannot detect at all, is a doubt: a
 * grant that the server makes meanwhile may count although another client still relies on the lost
 * keys. A hold without a quorum of other grants may overlap with another one until no client can
 * rely on the lost keys any more. README.md says when.
 */
#include "actions.h"
#include "checker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what happens to servers ---- */

static uint64_t over_at(const struct checker *checker) {
    return checker->world->now + checker->lasts;
}

/* Forgets the server's lost keys. */
static void forget(struct checker *checker, unsigned server, uint32_t keys) {
    actions_forgotten(&checker->network->servers[server].master, keys);
    for (; keys != 0; keys &= keys - 1) {
        unsigned key = (unsigned)__builtin_ctz(keys);
        checker->set_last[server][key] = NO_TOKEN;
        for (uint32_t i = 0; i < checker->token_count; i++) {
            checker->tokens[i].keeps_until[server][key] = 0;
        }
    }
}

void check_forgotten(struct master *master) {
    struct checker *checker = checker_of(master->world);
    forget(checker, master->index, (UINT32_C(1) << KEYS_MAX) - 1);
}

/* Records a doubt. An earlier loss may stay unknown for longer than this one. */
static void doubt(struct checker *checker, unsigned server, uint32_t keys, uint64_t unseen_until,
                  uint64_t unknown_until) {
    for (; keys != 0; keys &= keys - 1) {
        struct doubt *loss = &checker->losses[server][__builtin_ctz(keys)];
        loss->began = checker->world->now;
        loss->unseen_until = loss->unseen_until > unseen_until ? loss->unseen_until : unseen_until;
        loss->unknown_until =
            loss->unknown_until > unknown_until ? loss->unknown_until : unknown_until;
        loss->over_at = over_at(checker);
    }
}

uint64_t check_doubtful_until(const struct checker *checker, unsigned server, unsigned key) {
    const struct doubt *loss = &checker->losses[server][key];
    return loss->unseen_until > checker->world->now ? loss->over_at : 0;
}

void check_flushed(struct master *master, bool is_young) {
    struct checker *checker = checker_of(master->world);
    doubt(checker, master->index, (UINT32_C(1) << KEYS_MAX) - 1,
          checker->world->now + checker->unseen, is_young ? 0 : over_at(checker));
}

void check_followed(struct master *master, bool is_new) {
    struct checker *checker = checker_of(master->world);
    if (is_new) {
        checker->replica_from[master->index] = checker->world->now + checker->unseen;
    }
    doubt(checker, master->index, (UINT32_C(1) << KEYS_MAX) - 1,
          checker->replica_from[master->index], 0);
}

void check_promoted(struct master *master) {
    checker_of(master->world)->replica_from[master->index] = 0;
}

void check_evicted(struct master *master, uint32_t keys) {
    struct checker *checker = checker_of(master->world);
    forget(checker, master->index, keys);
    doubt(checker, master->index, keys, over_at(checker), 0);
    for (; keys != 0; keys &= keys - 1) {
        checker->evicted_until[master->index][__builtin_ctz(keys)] = over_at(checker);
    }
}

/* Returns the true time until which the server keeps the key of a token after its clock was set. */
static uint64_t kept_by(const struct checker *checker, struct master *master, uint32_t number,
                        unsigned key) {
    const char *name = checker->keys[key];
    master->store.db = checker->db;
    const struct store_key *found = master_find(master, name, strlen(name));
    if (checker->tokens[number].is_reader) {
        int64_t listed_ms = check_listed(checker, master, number);
        return listed_ms != 0 ? master_keeps_until(master, listed_ms) : 0;
    }
    /* If the key is gone or has another value, the server keeps nothing for this token. */
    bool has_it = found != NULL && found->type == STORE_STRING &&
                  check_token_of(checker, found->value, found->value_length) == number;
    return has_it ? master_keeps_until(master, found->expires_ms) : 0;
}

void check_clock_set(struct master *master, int64_t by, bool is_seen, bool is_young) {
    struct checker *checker = checker_of(master->world);
    uint64_t now = checker->world->now;
    memset(checker->silences[master->index], 0xff, sizeof(checker->silences[0])); /* NO_TOKEN */
    for (uint32_t i = 0; i < checker->token_count; i++) {
        struct token *token = &checker->tokens[i];
        for (uint32_t rest = token->keys; rest != 0; rest &= rest - 1) {
            unsigned key = (unsigned)__builtin_ctz(rest);
            uint64_t *kept = &token->keeps_until[master->index][key];
            *kept = *kept != 0 ? kept_by(checker, master, i, key) : 0;
        }
    }
    if (by < 0) { /* the server has lost no key */
        checker->set_back_ms[master->index] += -by / (int64_t)MS + 1;
        return;
    }
    /* Keys expired early by a forward jump: until clients learn of it, new grants are in doubt. */
    checker->jumps[master->index] =
        (struct doubt){.began = now,
                       .unseen_until = is_seen ? now : now + checker->unseen,
                       .unknown_until = is_young ? now : over_at(checker),
                       .over_at = over_at(checker)};
}

/* ---- what clients know ---- */

void check_heard(struct event_base *process, unsigned server, uint64_t at) {
    struct heard *heard = &checker_of(process->world)->heard[process->index][server];
    if (heard->at == 0 || heard->life != process->life) {
        *heard = (struct heard){process->life, at};
    }
}

static bool has_heard(const struct checker *checker, const struct event_base *process,
                      unsigned server, uint64_t before) {
    const struct heard *heard = &checker->heard[process->index][server];
    return heard->at != 0 && heard->life == process->life && heard->at < before;
}

/* Returns whether a grant may count although another client was granted the lost keys. */
static bool is_doubtful(const struct checker *checker, const struct event_base *process,
                        unsigned server, const struct doubt *doubt, uint64_t granted_at) {
    /*
     * After the loss is visible, a client without an earlier answer may still believe the old
     * memory.
     */
    return granted_at >= doubt->began && (granted_at < doubt->unseen_until ||
                                          (granted_at < doubt->unknown_until &&
                                           !has_heard(checker, process, server, doubt->began)));
}

void check_granted(struct checker *checker, const struct event_base *process, unsigned server,
                   const struct effect *effect, uint64_t granted_at) {
    const struct doubt *doubts[] = {&checker->jumps[server], &checker->losses[server][effect->key]};
    uint64_t *until = &checker->tokens[effect->token].doubtful_until[server][effect->key];
    *until = effect->doubtful_until;
    for (unsigned i = 0; i < 2; i++) {
        if (is_doubtful(checker, process, server, doubts[i], granted_at) &&
            doubts[i]->over_at > *until) {
            *until = doubts[i]->over_at;
        }
    }
}

void check_role(struct checker *checker, unsigned server, uint32_t token, uint64_t granted_at) {
    uint64_t replica_from = checker->replica_from[server];
    /* Trust: a replica's grant may not count once every client knows the role. */
    bool by_replica = replica_from != 0 && granted_at >= replica_from;
    uint32_t *by_replicas = &checker->tokens[token].by_replicas;
    *by_replicas = (*by_replicas & ~(UINT32_C(1) << server)) | (uint32_t)by_replica << server;
}

static bool is_open(const struct network *network, unsigned link_number) {
    const struct link *link = TAILQ_FIRST(&network->links);
    while (link != NULL && link->number != link_number) {
        link = TAILQ_NEXT(link, all_link);
    }
    return link != NULL && link->conn != NULL;
}

/* Trust: a heartbeat proves the state of its run; the age of trust counts from then. */
void check_freshness(struct checker *checker, const struct event_base *process, unsigned server,
                     uint32_t number, unsigned link_number) {
    struct token *token = &checker->tokens[number];
    unsigned fresh_on = token->fresh_on[server];
    uint64_t ran = checker->beat_ran[process->index][server];
    bool is_stale = checker->has_guards && checker->world->now - ran > checker->unseen;
    /* The server is two nodes to the client, which counts the grant that the other one gave. */
    if (is_stale && fresh_on != link_number && is_open(checker->network, fresh_on)) {
        return;
    }
    uint32_t bit = UINT32_C(1) << server;
    token->by_stale = (token->by_stale & ~bit) | (is_stale ? bit : 0);
    token->fresh_on[server] = is_stale ? 0 : link_number;
}

/* ---- what is excused ---- */

uint32_t check_voters(const redlock_lock *lock, redlock_vote vote) {
    redlock_node_report reports[SERVERS_MAX + 1];
    size_t count = redlock_report(lock, reports, SERVERS_MAX + 1);
    uint32_t servers = 0;
    for (size_t i = 0; i < count && i <= SERVERS_MAX; i++) {
        const char *port = strrchr(reports[i].node, ':') + 1;
        if (reports[i].vote == vote) {
            servers |= UINT32_C(1) << (strtoul(port, NULL, 10) - SIM_FIRST_PORT);
        }
    }
    return servers;
}

static bool has_quorum(uint32_t list, uint32_t servers) {
    return (unsigned)__builtin_popcount(list & servers) >= check_quorum_of(list);
}

void check_excuse_by(const struct checker *checker, struct hold *hold, uint32_t list,
                     uint32_t next) {
    const struct token *token = &checker->tokens[hold->token];
    uint32_t sound = check_voters(hold->lock, REDLOCK_VOTE_GRANTED);
    uint64_t latest = 0;
    uint64_t end = tempo_true(&hold->process->clock, hold->end);
    for (unsigned server = 0; server < checker->network->server_count; server++) {
        uint32_t bit = UINT32_C(1) << server;
        /* A push may have granted the key for less time than the quorum with a doubted grant. */
        uint64_t keeps_until = check_kept_until(checker, server, hold->token);
        sound &= ~(keeps_until != 0 && keeps_until < end ? bit : 0);
        for (uint32_t rest = hold->keys; rest != 0; rest &= rest - 1) {
            uint64_t until = token->doubtful_until[server][__builtin_ctz(rest)];
            sound &= ~(until > checker->world->now ? bit : 0);
            latest = until > latest ? until : latest;
        }
    }
    /* During a change of nodes the undoubted grants must be a quorum of both lists. */
    bool is_sound = has_quorum(list, sound) && (next == 0 || has_quorum(next, sound));
    hold->excused_until = is_sound ? 0 : latest;
}

void check_excuse(const struct checker *checker, struct hold *hold) {
    unsigned process = hold->process->index;
    check_excuse_by(checker, hold, checker->lists[process], checker->next_lists[process]);
}

void check_votes(const struct checker *checker, const struct hold *hold) {
    uint32_t counted = check_voters(hold->lock, REDLOCK_VOTE_GRANTED);
    uint32_t replicas = counted & checker->tokens[hold->token].by_replicas;
    if (replicas != 0) {
        violate(checker->world, INVARIANT_EXCLUSION,
                "the vote of node %d counts, which is a replica (token %" PRIu32 ")",
                __builtin_ctz(replicas), hold->token);
    }
    uint32_t stale = counted & checker->tokens[hold->token].by_stale;
    if (stale != 0) {
        violate(checker->world, INVARIANT_EXCLUSION,
                "the vote of node %d counts, which was not known to have its memory (token %" PRIu32
                ")",
                __builtin_ctz(stale), hold->token);
    }
}

bool check_is_excused(const struct checker *checker, const struct hold *hold) {
    return hold->excused_until > checker->world->now;
}

bool check_is_doubted(const struct checker *checker, uint32_t list, uint64_t since) {
    for (unsigned server = 0; server < checker->network->server_count; server++) {
        for (unsigned key = 0; key < KEYS_MAX; key++) {
            if (check_is_listed(list, server) && (checker->losses[server][key].over_at > since ||
                                                  checker->jumps[server].over_at > since)) {
                return true;
            }
        }
    }
    return false;
}

uint64_t check_evicted_until(const struct checker *checker, unsigned server, uint32_t keys) {
    uint64_t until = 0;
    for (; keys != 0; keys &= keys - 1) {
        uint64_t one = checker->evicted_until[server][__builtin_ctz(keys)];
        until = one > until ? one : until;
    }
    return until;
}
