#include "report.h"

#include <inttypes.h>
#include <jansson.h>
#include <redlock.h>
#include <stdio.h>

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *by_status(const uint64_t counts[STATUSES]) {
    json_t *object = json_object();

    for (int i = 0; i < STATUSES; i++) {
        if (counts[i] > 0) {
            json_object_set_new(object, redlock_status_name((redlock_status)-i), number(counts[i]));
        }
    }
    return object;
}

static json_t *names_of(uint32_t set) {
    json_t *names = json_array();

    for (unsigned i = 0; i < NEMESES; i++) {
        if ((set & NEMESIS_BIT(i)) != 0) {
            json_array_append_new(names, json_string(nemeses[i].name));
        }
    }
    return names;
}

static json_t *faults_of(const struct storm *storm) {
    json_t *faults = json_object();

    for (unsigned i = 0; i < NEMESES; i++) {
        if ((storm->stage->options->nemeses & NEMESIS_BIT(i)) != 0) {
            json_object_set_new(faults, nemeses[i].name, number(storm->counts[i]));
        }
    }
    return faults;
}

static json_t *examples_of(const struct verdict *verdict) {
    json_t *examples = json_array();

    for (size_t i = 0; i < MAX_EXAMPLES && i < verdict->overlaps; i++) {
        const struct overlap *overlap = &verdict->examples[i];

        json_array_append_new(
            examples, json_pack("{s:I, s:f, s:I, s:I}", "key", (json_int_t)overlap->key, "ms",
                                overlap->ms, "client", (json_int_t)(overlap->holds[0] >> 56) - 1,
                                "other", (json_int_t)(overlap->holds[1] >> 56) - 1));
    }
    return examples;
}

static json_t *settings_of(const struct outcome *outcome) {
    const struct options *options = outcome->options;
    const struct hosts *hosts = &outcome->storm->stage->hosts;

    return json_pack(
        "{s:I, s:I, s:I, s:b, s:b, s:b, s:o, s:b}", "clients", (json_int_t)options->clients, "keys",
        (json_int_t)options->keys, "ttl_ms", (json_int_t)options->ttl_ms, "hosts", options->hosts,
        "netem", options->hosts && hosts->has_netem, "recheck", options->recheck, "nemeses",
        names_of(options->nemeses), "assumptions_kept", options_keep_assumptions(options));
}

static json_t *lost_updates_of(const struct verdict *verdict) {
    return json_pack("{s:o, s:o, s:o, s:o}", "added", number(verdict->added), "late_writes",
                     number(verdict->late_writes), "lost", number(verdict->lost_updates),
                     "lost_within_validity", number(verdict->lost_in_time));
}

static json_t *to_json(const struct outcome *outcome) {
    const struct verdict *verdict = outcome->verdict;
    struct board *board = outcome->storm->stage->board;
    json_t *overlaps = json_pack("{s:o, s:o, s:o}", "validity", number(verdict->overlaps), "use",
                                 number(verdict->use_overlaps), "examples", examples_of(verdict));

    return json_pack(
        "{s:b, s:s?, s:f, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "ok",
        outcome->failure == NULL, "failure", outcome->failure, "seconds", outcome->seconds, "seed",
        (json_int_t)outcome->options->seed, "settings", settings_of(outcome), "acquired",
        number(verdict->acquired), "pushed", number(atomic_load(&board->pushed)), "handed_over",
        number(atomic_load(&board->handed_over)), "renewals", number(verdict->renewals), "extended",
        by_status(verdict->extended), "released", by_status(verdict->released), "lost",
        by_status(verdict->lost), "failed", by_status(verdict->failed), "overlaps", overlaps,
        "lost_updates", lost_updates_of(verdict), "faults", faults_of(outcome->storm));
}

static void print_text(const struct outcome *outcome) {
    const struct verdict *verdict = outcome->verdict;
    struct board *board = outcome->storm->stage->board;

    printf("redlock-chaos: %.1f s, seed %" PRIu64 ", %" PRIu64 " locks acquired\n",
           outcome->seconds, outcome->options->seed, verdict->acquired);
    for (unsigned i = 0; i < NEMESES; i++) {
        if (outcome->storm->counts[i] > 0) {
            printf("  %-28s %8" PRIu64 "\n", nemeses[i].name, outcome->storm->counts[i]);
        }
    }
    printf("  %-28s %8llu\n", "pushed to waiters", atomic_load(&board->pushed));
    printf("  %-28s %8llu\n", "handed over in a client", atomic_load(&board->handed_over));
    printf("  %-28s %8" PRIu64 "\n", "overlaps of validity", verdict->overlaps);
    printf("  %-28s %8" PRIu64 "\n", "overlaps of use", verdict->use_overlaps);
    printf("  %-28s %8" PRIu64 " of %" PRIu64 ", %" PRIu64 " within validity\n", "lost updates",
           verdict->lost_updates, verdict->added, verdict->lost_in_time);
    printf("%s\n", outcome->failure != NULL ? outcome->failure : "as promised");
}

int report_print(const struct outcome *outcome) {
    json_t *object = to_json(outcome);
    int printed = -1;

    if (!outcome->options->json) {
        print_text(outcome);
    }
    if (object != NULL &&
        json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(7)) == 0 &&
        putchar('\n') != EOF && fflush(stdout) == 0) {
        printed = 0;
    } else {
        fputs("redlock-chaos: cannot write the summary\n", stderr);
    }
    json_decref(object);
    return printed;
}
