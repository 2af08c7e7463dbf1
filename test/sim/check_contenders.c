/* Records which requests want a key at the same time: one without a contender must succeed. */
#include "checker.h"

/* Time after which a release has reached all servers, without faults. */
#define SETTLED (2000 * MS)

/* Identifies a worker, and the client by whose connections its commands keep their order. */
static uint64_t user_of(const struct event_base *process, unsigned worker) {
    return ((uint64_t)process->life << 32 | process->index << 8 | worker) + 1;
}

void check_claims(const struct event_base *process, unsigned worker, uint32_t keys) {
    struct checker *checker = checker_of(process->world);
    uint64_t now = checker->world->now;
    for (; keys != 0; keys &= keys - 1) {
        struct claim *claim = &checker->claims[__builtin_ctz(keys)];
        if (claim->user != user_of(process, worker)) {
            claim->user = user_of(process, worker);
            claim->others_until =
                claim->until > claim->others_until ? claim->until : claim->others_until;
        }
        if (claim->open > 0 || now < claim->others_until) {
            claim->contended_at = now;
        }
        claim->open++;
        claim->requests++;
    }
}

void check_taken(struct checker *checker, unsigned key) {
    checker->claims[key].requests++;
}

bool check_is_first(const struct event_base *process, uint32_t keys) {
    const struct checker *checker = checker_of(process->world);
    bool is_first = true;
    for (; keys != 0; keys &= keys - 1) {
        is_first &= checker->claims[__builtin_ctz(keys)].requests == 1;
    }
    return is_first;
}

void check_claims_end(const struct event_base *process, unsigned worker, uint32_t keys) {
    struct checker *checker = checker_of(process->world);
    for (; keys != 0; keys &= keys - 1) {
        struct claim *claim = &checker->claims[__builtin_ctz(keys)];
        claim->open--;
        bool is_latest = claim->user == user_of(process, worker);
        *(is_latest ? &claim->until : &claim->others_until) = checker->world->now + SETTLED;
    }
}

bool check_had_contender(const struct event_base *process, uint32_t keys, uint64_t began_at) {
    const struct checker *checker = checker_of(process->world);
    bool was_contended = false;
    for (; keys != 0; keys &= keys - 1) {
        was_contended |= checker->claims[__builtin_ctz(keys)].contended_at >= began_at;
    }
    return was_contended;
}

bool check_was_in_reach(const struct event_base *process, uint64_t began_at) {
    const struct checker *checker = checker_of(process->world);
    const struct network *network = checker->network;
    uint32_t list = checker->lists[process->index];
    unsigned in_reach = 0;
    for (unsigned i = 0; i < network->server_count; i++) {
        const struct path *path = &network->paths[process->index][i];
        in_reach += check_is_listed(list, i) &&
                    (path->late_requests_until < began_at || path->late_replies_until < began_at);
    }
    return in_reach >= check_quorum_of(list);
}
