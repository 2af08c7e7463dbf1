#include "report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

static double cycles_per_s(const struct measure_result *result) {
    return (double)result->cycles / result->duration_s;
}

static double cpu_us_per_cycle(const struct measure_result *result) {
    return result->cycles > 0 ? result->cpu_us / (double)result->cycles : 0;
}

static json_t *latency_to_json(const struct latency *latency) {
    return json_pack("{s:f, s:f, s:f}", "p50", latency->p50_us, "p99", latency->p99_us, "max",
                     latency->max_us);
}

int report_json(const char *kind, const struct measure_settings *settings,
                const struct measure_result *result) {
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:f, s:I, s:f, s:o, s:o, s:f, s:I}", "kind", kind, "nodes",
        (json_int_t)settings->node_count, "in_flight", (json_int_t)settings->in_flight,
        "duration_s", result->duration_s, "cycles", (json_int_t)result->cycles, "cycles_per_s",
        cycles_per_s(result), "acquire_us", latency_to_json(&result->acquire), "release_us",
        latency_to_json(&result->release), "client_cpu_us_per_cycle", cpu_us_per_cycle(result),
        "errors", (json_int_t)result->errors);
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

static void print_latency(const char *name, const struct latency *latency) {
    printf("  %-22s %10.1f us p50 %10.1f us p99 %10.1f us max\n", name, latency->p50_us,
           latency->p99_us, latency->max_us);
}

int report_text(const char *kind, const struct measure_settings *settings,
                const struct measure_result *result) {
    printf("%s: %zu nodes, %zu in flight, %.1f s\n", kind, settings->node_count,
           settings->in_flight, result->duration_s);
    printf("  %-22s %10.0f per second, %" PRIu64 " in all\n", "cycles", cycles_per_s(result),
           result->cycles);
    print_latency("acquire", &result->acquire);
    print_latency("release", &result->release);
    printf("  %-22s %10.2f us per cycle\n", "client CPU", cpu_us_per_cycle(result));
    printf("  %-22s %10" PRIu64 "\n", "errors", result->errors);
    if (fflush(stdout) != 0) {
        fputs("redlock-bench: cannot write the result\n", stderr);
        return -1;
    }
    return 0;
}
