/* Why it went so: what the nodes said in a lock's last round, as structs and as a sentence. */
#include "base/nanos.h"
#include "core/explain.h"
#include "core/validity.h"
#include "io/clock.h"
#include "lock.h"
#include "node.h"

#include <string.h>

static bool says_why_denied(redlock_vote vote) {
    return vote == REDLOCK_VOTE_DENIED || vote == REDLOCK_VOTE_WRONG_TYPE ||
           vote == REDLOCK_VOTE_NO_EXPIRY;
}

/* A try that was denied was settled: there the nodes said what it is that they hold. */
static const struct flight *source_of(const redlock_lock *lock, uint32_t node) {
    bool settled = lock->tried != NULL && lock->flight != NULL &&
                   says_why_denied((redlock_vote)lock->flight->round.votes[node]);
    return lock->tried != NULL && !settled ? lock->tried : lock->flight;
}

/* For a vote whose words were not noted. */
static const char *spare_detail(const struct node *node, redlock_vote vote) {
    switch (vote) {
    case REDLOCK_VOTE_UNREACHABLE:
        return node_why_unreachable(node);
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
    const struct flight *flight = source_of(lock, index);
    *report = (redlock_node_report){.node = node->name, .detail = ""};
    if (flight == NULL) {
        return;
    }
    report->vote = (redlock_vote)flight->round.votes[index];
    report->ttl_ms = flight->round.other_ttl_ms[index];
    report->detail = flight_detail(flight, index);
    if (report->detail[0] == '\0') {
        report->detail = spare_detail(node, report->vote);
    }
}

size_t redlock_report(const redlock_lock *lock, redlock_node_report *reports, size_t capacity) {
    if (lock == NULL) {
        return 0;
    }
    struct node *nodes[REDLOCK_MAX_NODES];
    uint32_t count = members_in_order(&lock->locks->context->members, nodes);
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        report_node(lock, nodes[i], &reports[i]);
    }
    return count;
}

static const char *what_happened(const redlock_lock *lock) {
    const struct lease *lease = &lock->lease;
    enum round_kind kind = lock->flight != NULL ? lock->flight->round.kind : ROUND_ACQUIRE;
    enum round_verdict verdict = lock->flight != NULL ? lock->flight->round.verdict : ROUND_NO;
    switch (kind) {
    case ROUND_RENEW:
        return verdict == ROUND_YES ? "renewed" : "not renewed";
    case ROUND_RELEASE:
        return verdict == ROUND_YES    ? "released"
               : verdict == ROUND_GONE ? "lost before it was released"
                                       : "released where it could be";
    default:
        return lease->acquired_at != 0 ? "acquired" : "not acquired";
    }
}

const char *redlock_explain(const redlock_lock *lock) {
    if (lock == NULL) {
        return "no lock";
    }
    struct context *context = lock->locks->context;
    redlock_node_report reports[REDLOCK_MAX_NODES];
    uint32_t count = (uint32_t)redlock_report(lock, reports, REDLOCK_MAX_NODES);
    bool acquiring = lock->flight == NULL || (lock->flight->round.kind != ROUND_RENEW &&
                                              lock->flight->round.kind != ROUND_RELEASE);
    uint64_t timeout = nanos_from_ms(context->options.node_timeout_ms);
    if (acquiring) { /* a try is over when no validity could be left */
        timeout =
            nanos_min(timeout, validity_end(0, lock->lease.terms.ttl, lock->lease.terms.drift));
    }
    struct explain_subject subject = {
        .what = what_happened(lock),
        .nodes = context->members.now.count,
        .next_nodes = context->members.next.count,
        .tries = acquiring ? lock->lease.tries : 0,
        .took_ms = nanos_to_ms(nanos_sub(clock_now(), lock->lease.begun_at)),
        .node_timeout_ms = nanos_to_ms(timeout),
    };
    struct text text;
    text_init(&text, context->explanation, sizeof(context->explanation));
    explain_write(&text, &subject, reports, count);
    return context->explanation;
}
