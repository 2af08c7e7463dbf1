#include "status.h"

#include "answer.h"
#include "fields.h"
#include "gateway.h"
#include "locks.h"
#include "views.h"

static double ms_of(uint64_t ns) {
    return (double)ns / 1e6;
}

static json_t *histogram_json(const redlock_histogram *histogram) {
    return json_pack("{s:I, s:f, s:f}", "count", (json_int_t)histogram->count, "p50_ms",
                     ms_of(redlock_histogram_quantile_ns(histogram, 0.5)), "p99_ms",
                     ms_of(redlock_histogram_quantile_ns(histogram, 0.99)));
}

static json_t *node_json(const redlock_client *client, const redlock_node_info *info,
                         size_t index) {
    redlock_node_stats stats = {.size = sizeof(stats)};

    redlock_client_node_stats(client, index, &stats);
    return json_pack("{s:o, s:b, s:b, s:o, s:I, s:f, s:f}", "node", answer_text(info->node),
                     "connected", info->connected, "trusted", info->trusted, "reason",
                     answer_text(info->connected ? info->distrust : info->reason), "trusted_in_ms",
                     (json_int_t)info->distrust_ms, "p50_ms",
                     ms_of(redlock_histogram_quantile_ns(&stats.round_trip, 0.5)), "p99_ms",
                     ms_of(redlock_histogram_quantile_ns(&stats.round_trip, 0.99)));
}

static json_t *nodes_json(const redlock_client *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    json_t *nodes = json_array();

    for (size_t i = 0; i < count && i < REDLOCK_MAX_NODES; i++) {
        json_array_append_new(nodes, node_json(client, &infos[i], i));
    }
    return nodes;
}

static json_t *locks_json(const struct holds *holds) {
    json_t *locks = json_array();

    for (size_t i = 0; i < holds->limit && json_array_size(locks) < STATUS_ROWS_MAX; i++) {
        if (holds->slots[i] != NULL && holds->slots[i]->is_held) {
            json_array_append_new(locks, hold_json(holds->slots[i]));
        }
    }
    return locks;
}

static json_t *waiters_json(const struct waiters *waiters, uint64_t now_ms) {
    const struct waiter *waiter;
    json_t *list = json_array();

    TAILQ_FOREACH(waiter, &waiters->list, link) {
        if (json_array_size(list) == STATUS_ROWS_MAX) {
            break;
        }
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:I}", "key", waiter->hold->key, "owner",
                                        waiter->hold->owner, "mode", lock_modes[waiter->hold->mode],
                                        "waited_ms", (json_int_t)(now_ms - waiter->since_ms)));
    }
    return list;
}

json_t *status_json(struct gateway *gateway) {
    uint64_t now_ms = connections_now_ms();
    redlock_stats stats = {.size = sizeof(stats)};

    redlock_client_stats(gateway->client, &stats);
    uint64_t handovers = stats.wait.count; /* all of them: the window bounds only the latencies */
    window_apply(&gateway->window, &stats);
    return json_pack(
        "{s:I, s:i, s:o, s:i, s:o, s:i, s:o, s:I, s:I, s:{s:o, s:o, s:o, s:o}}", "uptime_ms",
        (json_int_t)(now_ms - gateway->began_ms), "quorum",
        (int)nodes_quorum(&gateway->settings->nodes), "nodes", nodes_json(gateway->client), "held",
        (int)(gateway->holds.count - gateway->waiters.count), "locks", locks_json(&gateway->holds),
        "waiting", (int)gateway->waiters.count, "waiters", waiters_json(&gateway->waiters, now_ms),
        "handovers", (json_int_t)handovers, "lost",
        (json_int_t)(stats.lost_gone + stats.lost_expired), "latencies", "acquire",
        histogram_json(&stats.acquire), "wait", histogram_json(&stats.wait), "renew",
        histogram_json(&stats.renew), "release", histogram_json(&stats.release));
}

void status_serve(const struct exchange *exchange) {
    if (fields_none(exchange)) {
        answer_json(exchange->connection, 200, status_json(exchange->gateway));
    }
}

void health_serve(const struct exchange *exchange) {
    const struct gateway *gateway = exchange->gateway;
    size_t quorum = nodes_quorum(&gateway->settings->nodes);
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(gateway->client, infos, REDLOCK_MAX_NODES);
    size_t granting = 0;

    if (!fields_none(exchange)) {
        return;
    }
    for (size_t i = 0; i < count && i < REDLOCK_MAX_NODES; i++) {
        granting += infos[i].connected && infos[i].trusted;
    }
    if (granting < quorum) { /* no names of masters: the caller has not sent a token */
        answer_problem(exchange->connection, PROBLEM_NO_QUORUM, NULL,
                       "%zu of %zu masters grant locks, %zu are needed.", granting, count, quorum);
    } else {
        answer_json(exchange->connection, 200, json_pack("{s:s}", "status", "ok"));
    }
}
