#include "metrics.h"

#include "answer.h"
#include "fields.h"
#include "gateway.h"

#include <event2/buffer.h>
#include <inttypes.h>

#define PREFIX "redlock_gateway_"

static void write_line(const char *text, size_t length, void *arg) {
    evbuffer_add(arg, text, length);
}

static void write_metric(struct evbuffer *buffer, const char *name, const char *type,
                         const char *help, uint64_t value) {
    evbuffer_add_printf(
        buffer, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n" PREFIX "%s %" PRIu64 "\n", name,
        help, name, type, name, value);
}

static void write_answers(const char *route, int status, uint64_t count, void *arg) {
    evbuffer_add_printf(arg, PREFIX "answers_total{route=\"%s\",status=\"%d\"} %" PRIu64 "\n",
                        route, status, count);
}

static void write_gauges(const struct gateway *gateway, struct evbuffer *buffer) {
    write_metric(buffer, "connections", "gauge", "Connections of HTTP clients that are open.",
                 gateway->connections.count);
    write_metric(buffer, "locks", "gauge", "Locks that are held for HTTP clients.",
                 gateway->holds.count - gateway->waiters.count);
    write_metric(buffer, "waiters", "gauge", "Requests for locks that are under way.",
                 gateway->waiters.count);
    write_metric(buffer, "streams", "gauge", "Open streams of the state.", gateway->streams.count);
}

static void write_counters(const struct gateway *gateway, struct evbuffer *buffer) {
    const struct connections *connections = &gateway->connections;
    const struct gateway_counts *counts = &gateway->counts;

    write_metric(buffer, "connections_accepted_total", "counter", "Connections accepted.",
                 connections->accepted);
    write_metric(buffer, "connections_evicted_total", "counter",
                 "Connections closed in favour of others.", connections->evicted);
    write_metric(buffer, "connections_timed_out_total", "counter",
                 "Connections closed because they were idle or too slow.", connections->timed_out);
    write_metric(buffer, "connections_cut_total", "counter",
                 "Connections closed because they sent too much.", connections->cut);
    write_metric(buffer, "requests_canceled_total", "counter",
                 "Requests for locks whose connection broke.", counts->canceled);
    write_metric(buffer, "locks_returned_total", "counter",
                 "Locks that were acquired for connections that had broken, and released.",
                 counts->returned);
    write_metric(buffer, "locks_lapsed_total", "counter",
                 "Locks whose TTL ended without a renewal or release.", counts->lapsed);
    write_metric(buffer, "locks_lost_total", "counter",
                 "Locks that a quorum of masters lost before their TTL ended.", counts->lost);
}

void metrics_serve(const struct exchange *exchange) {
    const struct gateway *gateway = exchange->gateway;
    struct evbuffer *buffer;

    if (!fields_none(exchange)) {
        return;
    }
    if ((buffer = evbuffer_new()) == NULL) {
        answer_problem(exchange->connection, PROBLEM_NO_MEMORY, NULL, "Out of memory.");
        return;
    }
    redlock_stats_write(gateway->client, write_line, buffer);
    write_gauges(gateway, buffer);
    write_counters(gateway, buffer);
    evbuffer_add_printf(buffer, "# HELP " PREFIX "answers_total Answers by route and status.\n"
                                "# TYPE " PREFIX "answers_total counter\n");
    answer_counts(write_answers, buffer);
    answer_bytes(exchange->connection, "text/plain; version=0.0.4; charset=utf-8", buffer);
    evbuffer_free(buffer);
}
