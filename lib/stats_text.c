/*
 * The statistics in the text format of Prometheus (prometheus.io/docs/instrumenting, "Exposition
 * formats"). Each metric of nodes is written for all nodes before the next one.
 */
#include <redlock.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum kind { COUNTER, GAUGE, FLAG, HISTOGRAM };

struct series {
    const char *value; /* the value of the metric's label */
    size_t offset;     /* the offset of the field in its struct */
};

struct metric {
    const char *name;
    const char *help;
    enum kind kind;
    const char *label; /* NULL: one series, without a label of its own */
    const struct series *series;
    size_t series_count;
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BY(label, ...)                                                                             \
    label, (const struct series[]){__VA_ARGS__}, COUNT_OF(((const struct series[]){__VA_ARGS__}))
#define ONE(field) BY(NULL, {NULL, field})

#define OF_CLIENT(field) offsetof(redlock_stats, field)
#define OF_NODE(field) offsetof(redlock_node_stats, field)
#define OF_VOTE(vote) (OF_NODE(votes) + sizeof(uint64_t) * REDLOCK_VOTE_##vote)

static const struct metric client_metrics[] = {
    {"redlock_requests_refused_total", "Calls of redlock_acquire that were not accepted.", COUNTER,
     ONE(OF_CLIENT(refused))},
    {"redlock_requests_accepted_total", "Calls of redlock_acquire that were accepted.", COUNTER,
     ONE(OF_CLIENT(accepted))},
    {"redlock_requests_pending", "Accepted requests that have not ended.", GAUGE,
     ONE(OF_CLIENT(pending))},
    {"redlock_requests_total", "Accepted requests that have ended, by outcome.", COUNTER,
     BY("outcome", {"acquired", OF_CLIENT(acquired)}, {"held", OF_CLIENT(failed_held)},
        {"no_quorum", OF_CLIENT(failed_no_quorum)}, {"expired", OF_CLIENT(failed_expired)},
        {"no_access", OF_CLIENT(failed_no_access)}, {"no_memory", OF_CLIENT(failed_no_memory)},
        {"canceled", OF_CLIENT(canceled)}, {"closed", OF_CLIENT(closed)})},
    {"redlock_tries_total", "Tries to acquire, each with a token of its own.", COUNTER,
     ONE(OF_CLIENT(tries))},
    {"redlock_locks_held", "Locks that are held.", GAUGE, ONE(OF_CLIENT(held))},
    {"redlock_locks_lost_total", "Locks that were lost while held, by reason.", COUNTER,
     BY("reason", {"gone", OF_CLIENT(lost_gone)}, {"expired", OF_CLIENT(lost_expired)},
        {"closed", OF_CLIENT(lost_closed)})},
    {"redlock_renewals_total", "Renewals by the watchdog, by outcome.", COUNTER,
     BY("outcome", {"renewed", OF_CLIENT(renewed)}, {"failed", OF_CLIENT(renewals_failed)})},
    {"redlock_renewals_late_total", "Failed renewals that succeeded by answers that came later.",
     COUNTER, ONE(OF_CLIENT(renewed_late))},
    {"redlock_extensions_total", "Extensions, by outcome.", COUNTER,
     BY("outcome", {"extended", OF_CLIENT(extended)}, {"failed", OF_CLIENT(extensions_failed)})},
    {"redlock_releases_total", "Releases, by outcome.", COUNTER,
     BY("outcome", {"released", OF_CLIENT(released)}, {"gone", OF_CLIENT(released_gone)},
        {"no_quorum", OF_CLIENT(released_no_quorum)},
        {"no_memory", OF_CLIENT(released_no_memory)})},
    {"redlock_pushes_total", "Grants that nodes pushed to waiters, by outcome.", COUNTER,
     BY("outcome", {"taken", OF_CLIENT(pushes)}, {"returned", OF_CLIENT(pushes_returned)})},
    {"redlock_handovers_total", "Locks handed from one request of the client to the next.", COUNTER,
     ONE(OF_CLIENT(handovers))},
    {"redlock_acquire_seconds", "Time to acquire a lock at once, by the first try.", HISTOGRAM,
     ONE(OF_CLIENT(acquire))},
    {"redlock_wait_seconds", "Time to acquire a lock by the queue, or after a failed try.",
     HISTOGRAM, ONE(OF_CLIENT(wait))},
    {"redlock_renew_seconds", "Time of a renewal or extension that succeeded.", HISTOGRAM,
     ONE(OF_CLIENT(renew))},
    {"redlock_release_seconds", "Time until the outcome of a release is known.", HISTOGRAM,
     ONE(OF_CLIENT(release))},
};

static const struct metric node_metrics[] = {
    {"redlock_node_connected", "Whether commands are sent to the node.", FLAG,
     ONE(OF_NODE(connected))},
    {"redlock_node_trusted", "Whether the grants of the node count.", FLAG, ONE(OF_NODE(trusted))},
    {"redlock_node_connections_total", "Connections established, login included.", COUNTER,
     ONE(OF_NODE(connections))},
    {"redlock_node_disconnections_total", "Connections that failed or ended.", COUNTER,
     ONE(OF_NODE(disconnected))},
    {"redlock_node_replies_total", "Answers and messages of the node.", COUNTER,
     ONE(OF_NODE(replies))},
    {"redlock_node_sent_bytes_total", "Bytes sent to the node, before TLS.", COUNTER,
     ONE(OF_NODE(bytes_sent))},
    {"redlock_node_received_bytes_total", "Bytes received from the node, after TLS.", COUNTER,
     ONE(OF_NODE(bytes_received))},
    {"redlock_node_forbidden_total", "Answers by which the ACL refused a right.", COUNTER,
     ONE(OF_NODE(forbidden))},
    {"redlock_node_pending_releases", "Releases to send to the node again.", GAUGE,
     ONE(OF_NODE(pending_releases))},
    {"redlock_node_releases_deferred_total", "Releases that failed, and became pending.", COUNTER,
     ONE(OF_NODE(releases_deferred))},
    {"redlock_node_releases_retried_total", "Pending releases that the node answered.", COUNTER,
     ONE(OF_NODE(releases_retried))},
    {"redlock_node_given_up_total", "Releases dropped, and left to the TTL.", COUNTER,
     ONE(OF_NODE(given_up))},
    {"redlock_node_votes_total", "Votes of the node, by kind.", COUNTER,
     BY("vote", {"granted", OF_VOTE(GRANTED)}, {"denied", OF_VOTE(DENIED)},
        {"wrong_type", OF_VOTE(WRONG_TYPE)}, {"no_expiry", OF_VOTE(NO_EXPIRY)},
        {"missing", OF_VOTE(MISSING)}, {"error", OF_VOTE(ERROR)}, {"timeout", OF_VOTE(TIMEOUT)},
        {"unreachable", OF_VOTE(UNREACHABLE)}, {"refused", OF_VOTE(REFUSED)},
        {"broken", OF_VOTE(BROKEN)}, {"untrusted", OF_VOTE(UNTRUSTED)}, {"late", OF_VOTE(LATE)})},
    {"redlock_node_round_trip_seconds", "Time from a command to its answer.", HISTOGRAM,
     ONE(OF_NODE(round_trip))},
};

/* ---- lines ---- */

struct page {
    redlock_write_cb *write;
    void *arg;
};

/* Lengths with the NUL. */
#define LINE_MAX_LENGTH 1024
#define LABELS_MAX_LENGTH 768

static __attribute__((format(printf, 2, 3))) void print(const struct page *page, const char *format,
                                                        ...) {
    char line[LINE_MAX_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < sizeof(line)) {
        page->write(line, (size_t)length, page->arg);
    }
}

static void print_head(const struct page *page, const struct metric *metric) {
    static const char *const types[] = {
        [COUNTER] = "counter", [GAUGE] = "gauge", [FLAG] = "gauge", [HISTOGRAM] = "histogram"};
    print(page, "# HELP %s %s\n", metric->name, metric->help);
    print(page, "# TYPE %s %s\n", metric->name, types[metric->kind]);
}

/* The bounds of the buckets that are written, all powers of two: 66 us to 69 s. */
#define LEAST_BOUND_NS (UINT64_C(1) << 16)
#define LARGEST_BOUND_NS (UINT64_C(1) << 36)

static bool is_written(uint64_t bound_ns) {
    return (bound_ns & (bound_ns - 1)) == 0 && bound_ns >= LEAST_BOUND_NS &&
           bound_ns <= LARGEST_BOUND_NS;
}

static void print_histogram(const struct page *page, const char *metric, const char *labels,
                            const redlock_histogram *histogram) {
    const char *comma = labels[0] != '\0' ? "," : "";
    const char *open = labels[0] != '\0' ? "{" : "";
    const char *close = labels[0] != '\0' ? "}" : "";
    uint64_t count = 0;
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        uint64_t bound_ns = redlock_histogram_bound_ns(i);
        count += histogram->buckets[i];
        if (is_written(bound_ns)) {
            print(page, "%s_bucket{%s%sle=\"%" PRIu64 ".%09" PRIu64 "\"} %" PRIu64 "\n", metric,
                  labels, comma, bound_ns / 1000000000, bound_ns % 1000000000, count);
        }
    }
    print(page, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", metric, labels, comma, count);
    print(page, "%s_sum%s%s%s %" PRIu64 ".%09" PRIu64 "\n", metric, open, labels, close,
          histogram->sum_ns / 1000000000, histogram->sum_ns % 1000000000);
    print(page, "%s_count%s%s%s %" PRIu64 "\n", metric, open, labels, close, count);
}

/* Writes a value with its labels; `field` points into the struct of the client or of a node. */
static void print_value(const struct page *page, const struct metric *metric, const char *labels,
                        const char *field) {
    uint64_t number = 0;
    bool flag;
    switch (metric->kind) {
    case HISTOGRAM:
        print_histogram(page, metric->name, labels, (const void *)field);
        return;
    case FLAG:
        memcpy(&flag, field, sizeof(flag));
        number = flag;
        break;
    default:
        memcpy(&number, field, sizeof(number));
        break;
    }
    print(page, labels[0] != '\0' ? "%s{%s} %" PRIu64 "\n" : "%s%s %" PRIu64 "\n", metric->name,
          labels, number);
}

/*
 * Appends a label to others of `length` bytes. Returns the length of all. The value needs no
 * escapes: the names of nodes (see redlock_node_info) and of the series above have no quote,
 * backslash or line end.
 */
static size_t add_label(char *labels, size_t length, const char *name, const char *value) {
    return length + (size_t)snprintf(labels + length, LABELS_MAX_LENGTH - length, "%s%s=\"%s\"",
                                     length > 0 ? "," : "", name, value);
}

/* Writes all series of a metric; `node` is NULL where the struct is the client's. */
static void print_metric(const struct page *page, const struct metric *metric, const char *node,
                         const void *stats) {
    for (size_t i = 0; i < metric->series_count; i++) {
        const struct series *series = &metric->series[i];
        char labels[LABELS_MAX_LENGTH] = "";
        size_t length = 0;
        if (node != NULL) {
            length = add_label(labels, length, "node", node);
        }
        if (metric->label != NULL) {
            add_label(labels, length, metric->label, series->value);
        }
        print_value(page, metric, labels, (const char *)stats + series->offset);
    }
}

static void print_of_nodes(const struct page *page, const struct metric *metric,
                           const redlock_client *client) {
    redlock_node_stats stats = {.size = sizeof(stats)};
    for (size_t node = 0; redlock_client_node_stats(client, node, &stats) == REDLOCK_OK; node++) {
        print_metric(page, metric, stats.node, &stats);
    }
}

redlock_status redlock_stats_write(const redlock_client *client, redlock_write_cb *write,
                                   void *arg) {
    const struct page page = {write, arg};
    redlock_stats stats = {.size = sizeof(stats)};
    if (write == NULL || redlock_client_stats(client, &stats) != REDLOCK_OK) {
        return REDLOCK_EINVAL;
    }
    for (size_t i = 0; i < COUNT_OF(client_metrics); i++) {
        print_head(&page, &client_metrics[i]);
        print_metric(&page, &client_metrics[i], NULL, &stats);
    }
    for (size_t i = 0; i < COUNT_OF(node_metrics); i++) {
        print_head(&page, &node_metrics[i]);
        print_of_nodes(&page, &node_metrics[i], client);
    }
    return REDLOCK_OK;
}
