#include "core/explain.h"

#include "core/quorum.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Returns whether two nodes are reported together. The largest times of a group are reported. */
static bool same_group(const redlock_node_report *a, const redlock_node_report *b) {
    return a->vote == b->vote && strcmp(a->detail, b->detail) == 0;
}

/* A node that is down differs from one that is only slower than it may be. */
static void describe_timeout(struct text *text, const struct explain_subject *subject,
                             uint64_t answer_us) {
    text_append(text, "timeout after %" PRIu64 " ms", subject->node_timeout_ms);
    if (answer_us > 0) {
        text_append(text, ", usually it takes up to %" PRIu64 ".%" PRIu64 " ms", answer_us / 1000,
                    answer_us / 100 % 10);
    }
}

static void describe(struct text *text, const redlock_node_report *report, uint64_t ttl_ms,
                     uint64_t answer_us, const struct explain_subject *subject) {
    switch (report->vote) {
    case REDLOCK_VOTE_NONE:
        text_append(text, subject->is_open ? "not answered yet" : "not waited for");
        break;
    case REDLOCK_VOTE_GRANTED:
        text_append(text, "granted");
        break;
    case REDLOCK_VOTE_LATE:
        text_append(text, "granted too late, after %" PRIu64 " ms or more",
                    subject->node_timeout_ms);
        break;
    case REDLOCK_VOTE_DENIED:
        text_append(text, "%s", report->detail[0] != '\0' ? report->detail : "held by another");
        if (ttl_ms > 0) {
            text_append(text, ", for %" PRIu64 " ms more at most", ttl_ms);
        }
        break;
    case REDLOCK_VOTE_WRONG_TYPE:
        text_append(text, "the key exists but is no lock: %s",
                    report->detail[0] != '\0' ? report->detail : "wrong type");
        break;
    case REDLOCK_VOTE_NO_EXPIRY:
        text_append(text, "the key exists but is no lock: no expiry");
        break;
    case REDLOCK_VOTE_MISSING:
        text_append(text, "the key is gone");
        break;
    case REDLOCK_VOTE_ERROR:
    case REDLOCK_VOTE_REFUSED:
        text_append(text, "refused: %s", report->detail);
        break;
    case REDLOCK_VOTE_TIMEOUT:
        describe_timeout(text, subject, answer_us);
        break;
    case REDLOCK_VOTE_UNREACHABLE:
        text_append(text, "unreachable: %s", report->detail);
        break;
    case REDLOCK_VOTE_UNTRUSTED:
        text_append(text, "not trusted");
        if (ttl_ms > 0) {
            text_append(text, " for %" PRIu64 " ms more", ttl_ms);
        }
        text_append(text, ": %s", report->detail);
        break;
    case REDLOCK_VOTE_BROKEN:
    default: /* there is no other vote */
        text_append(text, "connection broke, outcome unknown: %s", report->detail);
        break;
    }
}

static void write_group(struct text *text, const struct explain_subject *subject,
                        const redlock_node_report *reports, uint32_t count, uint32_t first) {
    const redlock_node_report *leader = &reports[first];
    uint32_t members = 0;
    uint64_t ttl_ms = 0;
    uint64_t answer_us = 0; /* of the slowest */
    for (uint32_t i = first; i < count; i++) {
        if (same_group(leader, &reports[i])) {
            members++;
            ttl_ms = reports[i].ttl_ms > ttl_ms ? reports[i].ttl_ms : ttl_ms;
            uint64_t takes_us = subject->answer_us != NULL ? subject->answer_us[i] : 0;
            answer_us = takes_us > answer_us ? takes_us : answer_us;
        }
    }
    text_append(text, "; %" PRIu32 " ", members);
    describe(text, leader, ttl_ms, answer_us, subject);
    const char *before = " (";
    for (uint32_t i = first; i < count; i++) {
        if (same_group(leader, &reports[i])) {
            text_append(text, "%s%s", before, reports[i].node);
            before = ", ";
        }
    }
    text_append(text, ")");
}

static bool was_reported(const redlock_node_report *reports, uint32_t index) {
    for (uint32_t i = 0; i < index; i++) {
        if (same_group(&reports[i], &reports[index])) {
            return true;
        }
    }
    return false;
}

static void write_quorum(struct text *text, const struct explain_subject *subject) {
    text_append(text, ", %" PRIu32 " of %" PRIu32 " nodes", quorum_of(subject->nodes),
                subject->nodes);
    if (subject->next_nodes != 0) {
        text_append(text, " and %" PRIu32 " of the next %" PRIu32, quorum_of(subject->next_nodes),
                    subject->next_nodes);
    }
    text_append(text, " are needed");
}

void explain_write(struct text *text, const struct explain_subject *subject,
                   const redlock_node_report *reports, uint32_t count) {
    text_append(text, "%s", subject->what);
    if (subject->tries > 0) {
        text_append(text, " after %" PRIu32 " %s in %" PRIu64 " ms", subject->tries,
                    subject->tries == 1 ? "try" : "tries", subject->took_ms);
    }
    write_quorum(text, subject);
    for (uint32_t i = 0; i < count; i++) {
        /* Nodes with the same vote and detail share one clause. */
        if (!was_reported(reports, i)) {
            write_group(text, subject, reports, count, i);
        }
    }
}
