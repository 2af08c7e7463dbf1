#include "report.h"

#include "masters.h"
#include "outer.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 320 /* enough for any number */

static json_t *latency_to_json(const struct histogram *latency) {
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};
    json_t *object = json_object();

    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        double value_us = (double)histogram_quantile(latency, quantiles[i].share) / 1e3;

        json_object_set_new(object, quantiles[i].name, json_real(value_us));
    }
    json_object_set_new(object, "max", json_real((double)latency->max / 1e3));
    return object;
}

/* Returns a number, or null for NAN. */
static json_t *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* Prints and frees `object`, which may be NULL. Returns -1 on failure. */
static int print_json(json_t *object) {
    int outcome = -1;

    if (object != NULL && json_dumpf(object, stdout, JSON_REAL_PRECISION(7)) == 0 &&
        putchar('\n') != EOF && fflush(stdout) == 0) {
        outcome = 0;
    } else {
        fputs("redlock-bench: cannot write the result\n", stderr);
    }
    json_decref(object);
    return outcome;
}

/* Merges and frees both objects. Returns NULL if either is NULL. */
static json_t *merge(json_t *object, json_t *more) {
    if (object == NULL || more == NULL || json_object_update(object, more) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(more);
    return object;
}

/* Returns one number, or, by the masters' positions from 1, one for each. */
static json_t *rtt_to_json(const struct relay_delays *delays) {
    json_t *object;

    if (delays->rtt_count <= 1) {
        return json_real(delays->rtt_ms[0]);
    }
    object = json_object();
    for (size_t i = 0; i < delays->rtt_count; i++) {
        char position[24];

        snprintf(position, sizeof(position), "%zu", i + 1);
        json_object_set_new(object, position, json_real(delays->rtt_ms[i]));
    }
    return object;
}

/* Adds the delays of the relay, if there is one, to the settings. */
static json_t *with_delays(json_t *settings, const struct options *options) {
    const struct relay_delays *delays = &options->delays;

    if (!options->relayed) {
        return settings;
    }
    return merge(settings, json_pack("{s:o, s:f, s:f, s:f}", "rtt_ms", rtt_to_json(delays),
                                     "jitter_ms", delays->jitter_ms, "late_percent",
                                     delays->late_percent, "late_ms", delays->late_ms));
}

/* Adds the time that a master has to answer, unless it follows the answers. */
static json_t *with_node_timeout(json_t *settings, uint64_t ms) {
    return ms == 0 ? settings
                   : merge(settings, json_pack("{s:I}", "node_timeout_ms", (json_int_t)ms));
}

static json_t *cycles_setting_to_json(const char *kind, const struct options *options,
                                      const struct measure_settings *settings) {
    static const char *const modes[] = {[REDLOCK_EXCLUSIVE] = "exclusive",
                                        [REDLOCK_READER] = "reader",
                                        [REDLOCK_WRITER] = "writer"};
    json_t *object =
        json_pack("{s:s, s:I, s:b, s:I, s:I, s:I, s:s, s:I, s:I, s:b, s:s, s:s}", "kind", kind,
                  "nodes", (json_int_t)settings->node_count, "null_masters", options->null_masters,
                  "in_flight", (json_int_t)settings->in_flight, "threads",
                  (json_int_t)options->threads, "rate", (json_int_t)options->rate, "keys",
                  options->spread_text != NULL ? options->spread_text : "unique", "hold_us",
                  (json_int_t)settings->hold_us, "ttl_ms", (json_int_t)settings->ttl_ms, "fenced",
                  settings->fenced, "mode", modes[settings->mode], "loop",
                  options->shares_client  ? "mt"
                  : options->loop != NULL ? options->loop->name
                                          : "libevent");

    return with_node_timeout(object, settings->node_timeout_ms);
}

/* Returns the number of failures for each status that occurred. */
static json_t *failures_to_json(const struct cycles_failures *failures) {
    json_t *object = json_object();

    for (int i = 0; i < CYCLES_STATUSES; i++) {
        if (failures->counts[i] > 0) {
            const char *name = i == 0 ? "refused" : redlock_status_name((redlock_status)-i);

            json_object_set_new(object, name, json_integer((json_int_t)failures->counts[i]));
        }
    }
    return object;
}

static json_t *cycles_to_json(const struct measure_result *result) {
    double cycles = (double)result->cycles;

    return json_pack("{s:f, s:I, s:f, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "duration_s",
                     result->duration_s, "cycles", (json_int_t)result->cycles, "cycles_per_s",
                     result->cycles_per_s, "acquire_us", latency_to_json(&result->acquire),
                     "release_us", latency_to_json(&result->release), "client_cpu_us_per_cycle",
                     real_or_null(result->cpu_us / cycles), "masters_cpu_us_per_cycle",
                     real_or_null(result->masters_cpu_us / cycles), "backlog",
                     (json_int_t)result->backlog, "errors", (json_int_t)result->errors, "failures",
                     failures_to_json(&result->failures));
}

static json_t *lateness_to_json(const struct held_result *result) {
    return json_pack("{s:f, s:f, s:f}", "p50", result->late_p50_ms, "p99", result->late_p99_ms,
                     "max", result->late_max_ms);
}

static json_t *outage_to_json(const struct outage_result *outage) {
    return json_pack("{s:f, s:f, s:f, s:f}", "client_cores_before", outage->cores_before,
                     "client_cores_stopped", outage->cores_stopped, "script_calls_per_s_before",
                     outage->script_calls_before, "script_calls_per_s_stopped",
                     outage->script_calls_stopped);
}

static json_t *held_setting_to_json(const struct held_settings *settings) {
    return with_node_timeout(json_pack("{s:s, s:I, s:I}", "kind", "held", "nodes",
                                       (json_int_t)masters_count(settings->masters), "ttl_ms",
                                       (json_int_t)settings->ttl_ms),
                             settings->node_timeout_ms);
}

static json_t *held_to_json(const struct held_settings *settings,
                            const struct held_result *result) {
    json_t *object = json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:o, s:f, s:I}", "held",
        (json_int_t)result->held, "lost", (json_int_t)result->lost, "duration_s",
        result->duration_s, "seconds_to_acquire", result->seconds_to_acquire, "renewals_per_s",
        result->renewals_per_s, "script_calls_per_s", result->script_calls_per_s, "script_us_per_s",
        result->script_us_per_s, "errors", (json_int_t)result->errors, "client_cores",
        result->client_cores, "rss_mb", result->rss_mb, "timer_late_ms", lateness_to_json(result),
        "timer_late_work_ms", result->late_work_ms, "left", (json_int_t)result->left);

    if (settings->busy_ms > 0) {
        object = merge(object, json_pack("{s:f}", "busy_late_ms", result->busy_late_ms));
    }
    if (settings->stop > 0) {
        object = merge(object, outage_to_json(&result->outage));
    }
    return object;
}

static json_t *waits_to_json(const struct contend_result *result) {
    return json_pack("{s:o, s:o, s:f, s:o}", "p50", real_or_null(result->wait_p50_us), "p99",
                     real_or_null(result->wait_p99_us), "max", result->wait_max_us, "ideal",
                     real_or_null(result->wait_ideal_us));
}

static json_t *contest_to_json(const struct contend_settings *settings) {
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:f}", "kind", "contend", "nodes",
        (json_int_t)settings->node_count, "clients", (json_int_t)settings->clients, "processes",
        (json_int_t)settings->processes, "keys", (json_int_t)settings->keys, "hold_us",
        (json_int_t)settings->hold_us, "fenced", settings->fenced, "poll", settings->polls,
        "ttl_ms", (json_int_t)settings->ttl_ms, "duration_s", settings->duration_s);

    return with_node_timeout(object, settings->node_timeout_ms);
}

static json_t *contend_to_json(const struct contend_settings *settings,
                               const struct contend_result *result) {
    return json_pack("{s:I, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:I}", "acquisitions",
                     (json_int_t)result->acquisitions, "acquisitions_per_s",
                     (double)result->acquisitions / settings->duration_s, "wait_us",
                     waits_to_json(result), "fairness", real_or_null(result->fairness),
                     "commands_per_acquisition", real_or_null(result->commands), "handoff_us",
                     real_or_null(result->handoff_us), "release_us",
                     real_or_null(result->release_us), "round_trip_us",
                     real_or_null(result->round_trip_us), "quorum_round_trip_us",
                     real_or_null(result->quorum_trip_us), "longest_stall_ms", result->stall_ms,
                     "errors", (json_int_t)result->errors);
}

static json_t *mixed_setting_to_json(const struct mixed_settings *settings) {
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:b}", "kind", "mixed", "nodes",
                  (json_int_t)settings->cycles.node_count, "waiters", (json_int_t)settings->waiters,
                  "in_flight", (json_int_t)settings->cycles.in_flight, "ttl_ms",
                  (json_int_t)settings->cycles.ttl_ms, "fenced", settings->cycles.fenced);

    return with_node_timeout(object, settings->cycles.node_timeout_ms);
}

/* Returns one number for each stretch from `first` on. */
static json_t *stretches_to_json(const double numbers[MIXED_STRETCHES], enum mixed_stretch first) {
    static const char *const names[MIXED_STRETCHES] = {"before", "waiting", "after"};
    json_t *object = json_object();

    for (size_t i = first; i < MIXED_STRETCHES; i++) {
        json_object_set_new(object, names[i], real_or_null(numbers[i]));
    }
    return object;
}

static json_t *mixed_to_json(const struct mixed_result *result) {
    return json_pack("{s:o, s:o, s:o, s:I}", "cycles_per_s",
                     stretches_to_json(result->cycles_per_s, MIXED_BEFORE), "ratio",
                     stretches_to_json(result->ratio, MIXED_WAITING), "masters_cpu_us_per_cycle",
                     stretches_to_json(result->masters_cpu_us, MIXED_BEFORE), "errors",
                     (json_int_t)result->errors);
}

static json_t *fleet_setting_to_json(const struct fleet_settings *settings) {
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f}", "kind", "fleet", "nodes",
                  (json_int_t)masters_count(settings->masters), "clients",
                  (json_int_t)settings->clients, "working_percent",
                  (json_int_t)settings->working_percent, "rate", (json_int_t)settings->rate,
                  "ttl_ms", (json_int_t)settings->ttl_ms, "duration_s", settings->duration_s);

    return with_node_timeout(object, settings->node_timeout_ms);
}

/* Returns a cost in all. */
static json_t *cost_to_json(const struct fleet_cost *cost) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "seconds", cost->seconds, "commands",
                     cost->commands, "bytes_in", cost->bytes_in, "bytes_out", cost->bytes_out,
                     "cpu_us", cost->cpu_us);
}

/* Returns the cost of a state per second. */
static json_t *state_to_json(const struct fleet_result *result, size_t state) {
    const struct fleet_cost *cost = &result->states[state];

    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "commands_per_s",
                     cost->commands / cost->seconds, "bytes_in_per_s",
                     cost->bytes_in / cost->seconds, "bytes_out_per_s",
                     cost->bytes_out / cost->seconds, "cpu_us_per_s", cost->cpu_us / cost->seconds,
                     "connections", result->connections[state], "connection_bytes",
                     real_or_null(result->connection_bytes[state]));
}

static json_t *bystander_to_json(const struct bystander_counts *counts) {
    return json_pack("{s:I, s:I, s:I}", "cycles", (json_int_t)counts->cycles, "failed",
                     (json_int_t)counts->failed, "timeouts", (json_int_t)counts->timeouts);
}

static json_t *fleet_to_json(const struct fleet_result *result) {
    static const char *const names[FLEET_STATES] = {"idle", "working", "holding", "waiting",
                                                    "waited"};
    json_t *object = json_pack("{s:o}", "connect", cost_to_json(&result->connecting));

    for (size_t i = 0; i < FLEET_STATES; i++) {
        json_object_set_new(object, names[i], state_to_json(result, i));
    }
    return merge(object,
                 json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "restart_waiting",
                           cost_to_json(&result->restart_waiting), "bystander_waiting",
                           bystander_to_json(&result->bystander_waiting), "restart",
                           cost_to_json(&result->restart), "bystander",
                           bystander_to_json(&result->bystander), "cycles",
                           (json_int_t)result->cycles, "skipped", (json_int_t)result->skipped,
                           "lost", (json_int_t)result->lost, "errors", (json_int_t)result->errors));
}

static const char *null_in_words(const char *name) {
    return strcmp(name, "fairness") == 0 ? "one got none" : "none";
}

/* Writes a number with three significant digits and no exponent: 502000, 3.14, 0.0271. */
static void write_number(char text[NUMBER_SIZE], double number) {
    int position = number != 0 ? (int)floor(log10(fabs(number))) - 2 : 0; /* of the last digit */
    double unit = pow(10, abs(position));
    double rounded = position > 0 ? round(number / unit) * unit : number;

    snprintf(text, NUMBER_SIZE, "%.*f", position < 0 ? -position : 0, rounded);
}

static void print_field(const char *name, const char *part, const json_t *value) {
    char label[64];

    snprintf(label, sizeof(label), "%s%s%s", name, part[0] != '\0' ? " " : "", part);
    if (json_is_integer(value)) {
        printf("  %-28s %12" JSON_INTEGER_FORMAT "\n", label, json_integer_value(value));
    } else if (json_is_real(value)) {
        char number[NUMBER_SIZE];

        write_number(number, json_real_value(value));
        printf("  %-28s %12s\n", label, number);
    } else if (json_is_boolean(value)) {
        printf("  %-28s %12s\n", label, json_is_true(value) ? "yes" : "no");
    } else {
        printf("  %-28s %12s\n", label,
               json_is_null(value) ? null_in_words(name) : json_string_value(value));
    }
}

static void print_fields(const char *title, const json_t *object) {
    const char *name;
    const char *part;
    json_t *value;
    json_t *inner;

    printf("%s\n", title);
    json_object_foreach((json_t *)object, name, value) {
        if (json_is_object(value)) {
            json_object_foreach(value, part, inner) {
                print_field(name, part, inner);
            }
        } else {
            print_field(name, "", value);
        }
    }
}

/* Prints and frees both objects, which may be NULL; otherwise like print_json. */
static int print_text(json_t *settings, json_t *results) {
    int outcome = settings != NULL && results != NULL ? 0 : -1;

    if (outcome == 0) {
        print_fields("Settings", settings);
        print_fields("\nResults", results);
    }
    if (fflush(stdout) != 0) {
        outcome = -1;
    }
    if (outcome != 0) {
        fputs("redlock-bench: cannot write the result\n", stderr);
    }
    json_decref(settings);
    json_decref(results);
    return outcome;
}

/* Prints both objects as the options say, and frees them. */
static int print_result(const struct options *options, json_t *settings, json_t *results) {
    settings = with_delays(settings, options);
    return options->json ? print_json(merge(settings, results)) : print_text(settings, results);
}

int report_cycles(const char *kind, const struct options *options,
                  const struct measure_settings *settings, const struct measure_result *result) {
    return print_result(options, cycles_setting_to_json(kind, options, settings),
                        cycles_to_json(result));
}

int report_held(const struct options *options, const struct held_settings *settings,
                const struct held_result *result) {
    return print_result(options, held_setting_to_json(settings), held_to_json(settings, result));
}

int report_contend(const struct options *options, const struct contend_settings *settings,
                   const struct contend_result *result) {
    return print_result(options, contest_to_json(settings), contend_to_json(settings, result));
}

int report_mixed(const struct options *options, const struct mixed_settings *settings,
                 const struct mixed_result *result) {
    return print_result(options, mixed_setting_to_json(settings), mixed_to_json(result));
}

int report_fleet(const struct options *options, const struct fleet_settings *settings,
                 const struct fleet_result *result) {
    return print_result(options, fleet_setting_to_json(settings), fleet_to_json(result));
}
