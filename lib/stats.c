#include "stats.h"

#include "base/histogram.h"

#include <string.h>

/*
 * Copies a struct to one of the application, which may be shorter or longer, since it comes from
 * another version of the header. Both begin with their size.
 */
static redlock_status hand_out(void *given, const void *full, size_t full_size) {
    size_t size = 0;
    if (given != NULL) {
        memcpy(&size, given, sizeof(size));
    }
    if (size < sizeof(size)) {
        return REDLOCK_EINVAL;
    }
    memset(given, 0, size);
    memcpy(given, full, size < full_size ? size : full_size);
    memcpy(given, &size, sizeof(size));
    return REDLOCK_OK;
}

static uint64_t count_of(const struct counts_ends *ends, redlock_status status) {
    return ends->by[-status];
}

static uint64_t sum_of(const struct counts_ends *ends) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < COUNTS_STATUSES; i++) {
        sum += ends->by[i];
    }
    return sum;
}

static void read_requests(const struct counts *counts, redlock_stats *stats) {
    const struct counts_ends *ends = &counts->acquired;
    stats->refused = counts->refused;
    stats->accepted = counts->accepted;
    stats->pending = counts->accepted - sum_of(ends);
    stats->acquired = count_of(ends, REDLOCK_OK);
    stats->failed_held = count_of(ends, REDLOCK_EHELD);
    stats->failed_no_quorum = count_of(ends, REDLOCK_ENOQUORUM);
    stats->failed_expired = count_of(ends, REDLOCK_EEXPIRED);
    stats->failed_no_access = count_of(ends, REDLOCK_EACCESS);
    stats->failed_no_memory = count_of(ends, REDLOCK_ENOMEM);
    stats->canceled = count_of(ends, REDLOCK_ECANCELED);
    stats->closed = count_of(ends, REDLOCK_ECLOSED);
    stats->tries = counts->tries;
}

/*
 * Returns the number of locks that are held: acquired, and neither lost nor released since. The end
 * of a lock may be counted before its acquisition, which is counted when it is reported.
 */
static uint64_t count_held(const struct counts *counts) {
    uint64_t ended = sum_of(&counts->lost) + counts->let_go;
    uint64_t acquired = count_of(&counts->acquired, REDLOCK_OK);
    return acquired > ended ? acquired - ended : 0;
}

static void read_locks(const struct counts *counts, redlock_stats *stats) {
    stats->held = count_held(counts);
    stats->lost_gone = count_of(&counts->lost, REDLOCK_ELOST);
    stats->lost_expired = count_of(&counts->lost, REDLOCK_EEXPIRED);
    stats->lost_closed = count_of(&counts->lost, REDLOCK_ECLOSED);
    stats->renewed = counts->renewed;
    stats->renewals_failed = counts->renewals_failed;
    stats->renewed_late = counts->renewed_late;
    stats->extended = count_of(&counts->extended, REDLOCK_OK);
    stats->extensions_failed = sum_of(&counts->extended) - stats->extended;
    stats->released = count_of(&counts->released, REDLOCK_OK);
    stats->released_gone = count_of(&counts->released, REDLOCK_ELOST);
    stats->released_no_quorum = count_of(&counts->released, REDLOCK_ENOQUORUM);
    stats->released_no_memory = count_of(&counts->released, REDLOCK_ENOMEM);
}

redlock_status stats_read(const struct counts *counts, redlock_stats *stats) {
    redlock_stats full = {
        .pushes = counts->pushes,
        .pushes_returned = counts->pushes_returned,
        .handovers = counts->handovers,
        .acquire = counts->acquire,
        .wait = counts->wait,
        .renew = counts->renew,
        .release = counts->release,
    };
    histogram_count(&full.acquire);
    histogram_count(&full.wait);
    histogram_count(&full.renew);
    histogram_count(&full.release);
    read_requests(counts, &full);
    read_locks(counts, &full);
    return hand_out(stats, &full, sizeof(full));
}

redlock_status stats_read_node(const struct node *node, redlock_node_stats *stats) {
    const struct traffic *commands = &node->uplink.traffic;
    const struct traffic *messages = &node->channel.uplink.traffic;
    redlock_node_stats full = {
        .node = node_name(node),
        .connected = node_is_up(node),
        .trusted = guard_look(&node->guard).fault == TRUST_NO_FAULT,
        .connections = node->connections,
        .disconnected = node->uplink.disconnected,
        .replies = commands->replies + messages->replies,
        .bytes_sent = commands->bytes_sent + messages->bytes_sent,
        .bytes_received = commands->bytes_received + messages->bytes_received,
        .forbidden = node->forbidden,
        .pending_releases = node->pending.count,
        .releases_deferred = node->undelivered,
        .releases_retried = node->redelivered,
        .given_up = node->unreleased,
        .round_trip = commands->round_trip,
    };
    _Static_assert(sizeof(node->votes) <= sizeof(full.votes), "a counter for each kind of vote");
    memcpy(full.votes, node->votes, sizeof(node->votes));
    histogram_count(&full.round_trip);
    return hand_out(stats, &full, sizeof(full));
}
