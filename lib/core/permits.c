#include "core/permits.h"

#include "core/backoff.h"

#include <assert.h>
#include <string.h>

void permits_begin(struct permits *permits, uint32_t count) {
    assert(count <= REDLOCK_MAX_PERMITS);
    permits->count = count;
    permits->offered = 0;
    memset(permits->free_at, 0, count * sizeof(permits->free_at[0]));
}

void permits_record(struct permits *permits, uint32_t node, uint32_t permit) {
    assert(node < REDLOCK_MAX_NODES && permit < permits->count);
    permits->free_at[permit] |= UINT32_C(1) << node;
}

void permits_add_offer(struct permits *permits, uint32_t node, uint32_t permit) {
    permits_record(permits, node, permit);
    permits->offered |= UINT32_C(1) << node;
}

/* Returns the number of nodes where a permit is known to be free; 0 if no quorum can grant it. */
static uint32_t worth(const struct round *round, uint32_t unknown, uint32_t permit) {
    uint32_t free_at = round->permits->free_at[permit] & round->members;
    return round_has_quorum(round, free_at | unknown) ? (uint32_t)__builtin_popcount(free_at) : 0;
}

/* Returns a mask of the nodes that may have permits free that they have not reported. */
static uint32_t unknown_at(const struct round *round) {
    /* A waiter waits for the answers, but a try is over before them. */
    uint32_t silent = round->kind == ROUND_QUEUE ? 0 : round->silent;
    return silent | round_voters(round, REDLOCK_VOTE_GRANTED) | round->permits->offered;
}

/* Returns the permit known to be free at most nodes, even if these are too few; or else `tried`. */
static uint32_t guess(const struct round *round, uint32_t tried) {
    const uint32_t *free_at = round->permits->free_at;
    uint32_t best = tried;
    for (uint32_t permit = 0; permit < round->permits->count; permit++) {
        /* Ties stay with `tried`, whose grants need not be given up. */
        bool is_more = __builtin_popcount(free_at[permit]) > __builtin_popcount(free_at[best]);
        best = is_more ? permit : best;
    }
    return best;
}

bool permits_is_offered(const struct round *round, uint32_t tried) {
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint32_t offered = round->permits->offered & ~granted;
    /* Grants in hand are kept: each node that offers reserves any permit for this waiter. */
    return offered != 0 && round_has_quorum(round, granted | offered) &&
           (granted != 0 || guess(round, tried) == tried);
}

struct permit_choice permits_choose(const struct round *round, uint32_t tried, uint64_t *seed) {
    struct permit_choice best = {.permit = tried};
    uint32_t count = round->permits != NULL ? round->permits->count : 0;
    /* Nodes that may have any permit free count towards the quorum of each. */
    uint32_t unknown = count > 0 ? unknown_at(round) : 0;
    uint32_t most = 0;
    uint32_t equals = 0;
    for (uint32_t permit = 0; permit < count; permit++) {
        uint32_t found = worth(round, unknown, permit);
        bool was_denied = permit == tried && round->kind != ROUND_QUEUE;
        if (was_denied || found < most) {
            continue;
        }
        equals = found > most ? 1 : equals + 1;
        most = found;
        /* Reservoir sampling: each of the permits that are free at most nodes is equally likely. */
        if (backoff_random(seed) % equals == 0) {
            best.permit = permit;
        }
    }
    best.is_promising = most > 0;
    return best;
}
