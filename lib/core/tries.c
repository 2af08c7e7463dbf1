#include "core/tries.h"

#include "core/backoff.h"
#include "core/quorum.h"

/* Returns the retries used: all tries but the first and the permit retries. */
static uint32_t retries_used(const struct lease *lease) {
    assert(lease->tries > lease->permit_retries);
    return lease->tries - 1 - lease->permit_retries;
}

bool tries_may_go_on(const struct lease *lease, uint64_t now) {
    return retries_used(lease) < lease->terms->retries && now < lease->trying.give_up_at;
}

bool tries_are_used_up(const struct lease *lease) {
    /* No try at all: another request of this client had the key the whole time. */
    bool was_tried = lease->tries > 0;
    return was_tried && lease->terms->retries > 0 && retries_used(lease) >= lease->terms->retries;
}

uint64_t tries_longest_delay(const struct lease *lease, uint64_t now) {
    const struct lease_terms *terms = lease->terms;
    uint64_t bound = backoff_bound(terms->retry_delay, terms->retry_delay_max, retries_used(lease));
    return nanos_min(bound, nanos_sub(lease->trying.give_up_at, now));
}

bool tries_draw_delay(struct lease *lease, uint64_t now, uint64_t *delay) {
    if (!tries_may_go_on(lease, now)) {
        return false;
    }
    *delay = backoff_draw(lease->terms->seed, tries_longest_delay(lease, now));
    return *delay < lease->trying.give_up_at - now;
}

/* Returns whether a list has no quorum without `nodes`, a mask. */
static bool blocks_quorum(const struct round *round, uint32_t nodes) {
    /* During a change either list can prevent the acquisition. */
    bool blocks = false;
    for (unsigned i = 0; i < round->tally_count; i++) {
        const struct tally *tally = &round->tallies[i];
        uint32_t count = (uint32_t)__builtin_popcount(tally->members & nodes);
        blocks |= quorum_is_blocked(tally->size, count);
    }
    return blocks;
}

redlock_status tries_failure(const struct round *round) {
    if (round->verdict == ROUND_YES) {
        return REDLOCK_EEXPIRED;
    }
    uint32_t denied = round_deniers(round);
    uint32_t voted = round->members & ~round->silent;
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint32_t failed = voted & ~granted & ~denied; /* by all votes, also those after the verdict */
    /* Nodes that refuse the client would prevent a quorum in every further try, too. */
    if (blocks_quorum(round, failed & round->refusing)) {
        return REDLOCK_EACCESS;
    }
    /* EHELD only if the denials decided: the failed nodes alone would have left a quorum. */
    return denied != 0 && !blocks_quorum(round, failed) ? REDLOCK_EHELD : REDLOCK_ENOQUORUM;
}
