/* Reports on a lock's last round: the votes of its nodes, as structs and as a sentence. */
#include "base/nanos.h"
#include "core/explain.h"
#include "core/tries.h"
#include "core/validity.h"
#include "io/clock.h"
#include "lock/locks.h"
#include "node/node.h"

#include <string.h>

static bool says_why_denied(redlock_vote vote) {
    return vote == REDLOCK_VOTE_DENIED || vote == REDLOCK_VOTE_WRONG_TYPE ||
           vote == REDLOCK_VOTE_NO_EXPIRY;
}

/*
 * Returns the operation to report a node's vote from. After a DIAGNOSE, a node that answered in it
 * what it holds is reported from there, and any other node from the failed try before it.
 */
static const struct operation *source_of(const redlock_lock *lock, uint32_t node) {
    const struct operation *operation = lock->operation;
    bool has_diagnosed = says_why_denied((redlock_vote)operation->round.votes[node]);
    return operation->tried != NULL && !has_diagnosed ? operation->tried : operation;
}

/* Returns the detail of a vote that has none recorded. */
static const char *spare_detail(const struct node *node, redlock_vote vote) {
    switch (vote) {
    case REDLOCK_VOTE_UNREACHABLE:
    case REDLOCK_VOTE_REFUSED:
        return uplink_why_unreachable(&node->uplink);
    case REDLOCK_VOTE_BROKEN:
    case REDLOCK_VOTE_UNTRUSTED:
        return "there was no memory to note why";
    default:
        return "";
    }
}

static void report_node(const redlock_lock *lock, const struct node *node,
                        redlock_node_report *report) {
    uint32_t index = node->index;
    *report = (redlock_node_report){.node = node_name(node), .detail = ""};
    if (lock->operation == NULL) { /* at rest: two masks are all that is kept (outbox_rest) */
        report->vote = lock->granted >> index & 1  ? REDLOCK_VOTE_GRANTED
                       : lock->unsent >> index & 1 ? node_vote_unsent(node)
                                                   : REDLOCK_VOTE_NONE;
    } else {
        const struct operation *operation = source_of(lock, index);
        report->vote = (redlock_vote)operation->round.votes[index];
        report->ttl_ms = round_answer(&operation->round, index).other_ttl_ms;
        report->detail = operation_detail(operation, index);
    }
    if (report->detail[0] == '\0') {
        report->detail = spare_detail(node, report->vote);
    }
}

size_t redlock_report(const redlock_lock *lock, redlock_node_report *reports, size_t capacity) {
    if (lock == NULL) {
        return 0;
    }
    struct node *nodes[REDLOCK_MAX_NODES];
    uint32_t count = members_in_order(lock->locks->members, nodes);
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        report_node(lock, nodes[i], &reports[i]);
    }
    return count;
}

static const char *what_was_lost(const struct lease *lease) {
    bool was_renewed = lease->terms->watchdog;
    if (lease->loss == REDLOCK_ELOST) {
        return "lost: so many nodes no longer have it that no quorum is left";
    }
    return !was_renewed    ? "lost: its validity ended, and nothing renewed it"
           : lease->renews ? "lost: its validity ended before it could be renewed"
                           : "lost: max_hold_ms was over, and its validity ended";
}

/* Returns why a request failed, which its votes may not show. */
static const char *what_ended(const struct lease *lease) {
    switch (lease->failure) {
    case REDLOCK_ECANCELED:
        return "not acquired: canceled";
    case REDLOCK_ECLOSED:
        return "not acquired: the client was closed";
    case REDLOCK_ENOMEM:
        return "not acquired: out of memory";
    case REDLOCK_EACCESS:
        return "not acquired: no access to the nodes";
    case REDLOCK_EEXPIRED:
        return "not acquired: granted too slowly, so that no validity was left,";
    default:
        return lease->terms->retries == 0 ? "not acquired"
               : tries_are_used_up(lease) ? "not acquired: no retry is left"
                                          : "not acquired: wait_ms is over";
    }
}

static const char *what_became_of_renewal(const struct round *round) {
    return round->verdict == ROUND_OPEN                                   ? "being renewed"
           : round->verdict == ROUND_YES || round_was_granted_late(round) ? "renewed"
                                                                          : "not renewed";
}

static const char *what_became_of_release(const struct round *round, bool is_closing) {
    return round->verdict == ROUND_YES    ? "released"
           : round->verdict == ROUND_GONE ? "lost before it was released"
           : round->verdict == ROUND_NO   ? "released where it could be"
           : is_closing                   ? "the client was closed: being released"
                                          : "being released";
}

/* Returns whether the lock's end has no round: it was handed on, or there was no memory to send it.
 */
static bool ends_without_round(const redlock_lock *lock) {
    const struct round *round = lock_round(lock);
    return lock->lease.was_acquired && (lock->is_let_go || lock->is_notified) &&
           (round == NULL || round->kind != ROUND_RELEASE);
}

static const char *what_became_of_handle(const redlock_lock *lock) {
    return !lock->is_notified              ? "being released"
           : lock->ended == REDLOCK_ENOMEM ? "not released: out of memory"
                                           : "released";
}

/* Returns the head of the sentence. The state decides first: a lock may be lost without a round. */
static const char *what_happened(const redlock_lock *lock) {
    const struct lease *lease = &lock->lease;
    const struct round *round = lock_round(lock);
    if (lease->state == LEASE_LOST) {
        return what_was_lost(lease);
    }
    if (ends_without_round(lock)) {
        return what_became_of_handle(lock);
    }
    if (round == NULL && lock->was_renewed) {
        return "renewed";
    }
    if (round != NULL && round->kind == ROUND_RENEW) {
        return what_became_of_renewal(round);
    }
    if (round != NULL && round->kind == ROUND_RELEASE) {
        return what_became_of_release(round, lock->locks->context->is_closing);
    }
    return lease->was_acquired        ? "acquired"
           : lease->completed_at != 0 ? what_ended(lease)
                                      : "not acquired yet";
}

/* Returns whether the last round was for the acquisition, so that the report counts tries. */
static bool is_about_acquisition(const redlock_lock *lock) {
    const struct round *round = lock_round(lock);
    bool is_later = round != NULL ? round->kind == ROUND_RENEW || round->kind == ROUND_RELEASE
                                  : lock->was_renewed;
    return lock->lease.state != LEASE_LOST && !is_later && !ends_without_round(lock);
}

/* Returns the time that late nodes had to answer: after a DIAGNOSE, in the try before it. */
static uint64_t timeout_ms(const redlock_lock *lock) {
    const struct operation *operation = lock->operation;
    const struct operation *tried = operation != NULL ? operation->tried : NULL;
    return operation != NULL ? nanos_to_ms((tried != NULL ? tried : operation)->round.timeout) : 0;
}

/* Returns whether no try was made: the request waits for its first, or ended before it. */
static bool is_untried(const struct lease *lease) {
    return lease->tries == 0 && !lease->was_acquired;
}

/* Returns what such a request waits for. Requests draw no ticket before the nodes are known. */
static const char *what_is_first(const redlock_lock *lock) {
    return lock->wait != NULL && lock->wait->ticket != 0
               ? "for another request of the client is served first"
           : lock->locks->members->are_known
               ? "for the nodes had no room for it (max_commands, max_bytes)"
               : "for they are, or were, still being looked up or connected to";
}

/* Fills in how long the nodes' answers usually take, in the order of reports. */
static void measure_answers(const struct members *members, uint64_t answer_us[REDLOCK_MAX_NODES]) {
    struct node *nodes[REDLOCK_MAX_NODES];
    uint32_t count = members_in_order(members, nodes);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t usual = answer_time_usual(&nodes[i]->uplink.traffic.answer_time);
        answer_us[i] = usual / NANOS_PER_US;
    }
}

const char *redlock_explain(const redlock_lock *lock) {
    if (lock == NULL) {
        return "no lock";
    }
    struct locks *locks = lock->locks;
    const struct lease *lease = &lock->lease;
    struct text text;
    text_init(&text, locks->explanation, sizeof(locks->explanation));
    if (is_untried(lease)) {
        text_append(&text, "%s; no node was asked, %s",
                    lease->completed_at != 0 ? what_ended(lease) : "not acquired yet",
                    what_is_first(lock));
        return locks->explanation;
    }
    redlock_node_report reports[REDLOCK_MAX_NODES];
    uint64_t answer_us[REDLOCK_MAX_NODES] = {0};
    uint32_t count = (uint32_t)redlock_report(lock, reports, REDLOCK_MAX_NODES);
    measure_answers(locks->members, answer_us);
    uint64_t ended_at = lease->completed_at != 0 ? lease->completed_at : clock_now();
    struct explain_subject subject = {
        .what = what_happened(lock),
        .nodes = locks->members->now.count,
        .next_nodes = locks->members->next.count,
        .tries = is_about_acquisition(lock) ? lease->tries : 0,
        .took_ms = nanos_to_ms(nanos_sub(ended_at, lease->begun_at)),
        .is_open = lock_round(lock) != NULL && lock_round(lock)->verdict == ROUND_OPEN &&
                   lease->state != LEASE_OVER,
        .node_timeout_ms = timeout_ms(lock),
        .answer_us = answer_us,
    };
    explain_write(&text, &subject, reports, count);
    return locks->explanation;
}
