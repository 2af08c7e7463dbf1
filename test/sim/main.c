/*
 * redlock-sim: runs the library's own code over a simulated loop, clock, network and masters, one
 * world for each seed, and reports whether an invariant was ever violated.
 */
#include "mutants.h"
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
    uint64_t first, last;
    struct demand demand;
    unsigned limit_s; /* limit in seconds; 0: none */
    bool wants_trace, wants_actions, wants_json, stops_at_first, wants_mutants;
    const char *mutant;
    unsigned part, parts; /* of the mutants, from 1 */
};

struct totals {
    uint64_t seeds, events, violations, simulated;
    uint64_t acquired, lost, failed, released;
    uint64_t fenced, raised, from_ranges, stayed;
    uint64_t permits_held, permits_second, permits_later;
    uint64_t shared, looks, excused;
    struct waiting waiting;
    uint64_t passed, handed_over;
    struct {
        uint64_t seeds, acquired, overlaps, seeds_with_overlap;
    } by_cause[CAUSE_COUNT];
    double seconds;
};

static const char usage[] =
    "usage: redlock-sim [--seeds A..B] [--profile NAME] [--guards] [--mutant NAME]\n"
    "                   [--trace | --actions] [--json] [--first]\n"
    "       redlock-sim --mutants [--part I/N] [--seeds A..B]\n"
    "\n"
    "  --seeds A..B      run these seeds, or one seed A (default 1..1000)\n"
    "  --profile kept    the assumptions of the promises hold (default)\n"
    "  --profile broken  they are broken on purpose: how often does mutual exclusion break?\n"
    "  --profile guarded masters restart empty, and the clients' guards must keep the promise\n"
    "  --profile moving  servers are replaced while clients run\n"
    "  --profile load    thousands of locks in a client; loop and masters have finite rates\n"
    "  --profile distance  long and uneven round trips, with the default timeouts\n"
    "  --guards          the clients' guards are on, in every profile\n"
    "  --mutant NAME     run a library with this deliberate bug\n"
    "  --mutants         run all of them, each until it is caught, up to seed B\n"
    "  --part I/N        run only the I-th of every N mutants, one after the other\n"
    "  --trace           print everything that happens\n"
    "  --actions         print what test/proof/traces.sh compares with the proof's model\n"
    "  --json            print the summary as JSON\n"
    "  --first           end at the first violation\n"
    "  --limit S         be killed by SIGALRM when one seed takes so many seconds\n";

static bool read_number(const char *text, uint64_t *number, const char **end) {
    char *rest;
    errno = 0;
    *number = strtoull(text, &rest, 10);
    *end = rest;
    return rest != text && errno == 0 && text[0] != '-';
}

static bool read_seeds(const char *text, struct options *options) {
    const char *rest;
    if (!read_number(text, &options->first, &rest)) {
        return false;
    }
    options->last = options->first;
    if (rest[0] == '.' && rest[1] == '.' && !read_number(rest + 2, &options->last, &rest)) {
        return false;
    }
    return rest[0] == '\0' && options->first <= options->last;
}

static bool read_part(const char *text, struct options *options) {
    char end;
    return sscanf(text, "%u/%u%c", &options->part, &options->parts, &end) == 2 &&
           options->part >= 1 && options->part <= options->parts;
}

static void refuse(const char *what, const char *given) {
    fprintf(stderr, "redlock-sim: %s: %s\n\n%s", what, given, usage);
    exit(2);
}

static void read_profile(const char *name, struct options *options) {
    enum profile profile = PROFILE_KEPT;
    while (profile < PROFILE_COUNT && strcmp(name, profile_name(profile)) != 0) {
        profile++;
    }
    if (profile == PROFILE_COUNT) {
        refuse("--profile takes kept, broken, guarded, moving, load or distance", name);
    }
    options->demand.profile = profile;
}

static void read_options(int argc, char **argv, struct options *options) {
    static const struct option known[] = {{"seeds", required_argument, NULL, 's'},
                                          {"profile", required_argument, NULL, 'p'},
                                          {"mutant", required_argument, NULL, 'm'},
                                          {"mutants", no_argument, NULL, 'M'},
                                          {"part", required_argument, NULL, 'n'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"first", no_argument, NULL, 'f'},
                                          {"limit", required_argument, NULL, 'P'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"guards", no_argument, NULL, 'g'},
                                          {"actions", no_argument, NULL, 'a'},
                                          {NULL, 0, NULL, 0}};
    int option;
    uint64_t seconds;
    const char *rest;
    *options = (struct options){.first = 1, .last = 1000, .part = 1, .parts = 1};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!read_seeds(optarg, options)) {
                refuse("--seeds takes A..B, or A", optarg);
            }
            break;
        case 'p':
            read_profile(optarg, options);
            break;
        case 'g':
            options->demand.has_guards = true;
            break;
        case 'm':
            options->mutant = optarg;
            break;
        case 'M':
            options->wants_mutants = true;
            break;
        case 'n':
            if (!read_part(optarg, options)) {
                refuse("--part takes I/N, two numbers", optarg);
            }
            break;
        case 't':
            options->wants_trace = true;
            break;
        case 'a':
            options->wants_actions = true;
            options->demand.actions = stdout;
            break;
        case 'j':
            options->wants_json = true;
            break;
        case 'f':
            options->stops_at_first = true;
            break;
        case 'P':
            if (!read_number(optarg, &seconds, &rest) || *rest != '\0' || seconds > 86400) {
                refuse("--limit takes seconds", optarg);
            }
            options->limit_s = (unsigned)seconds;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (optind < argc) {
        refuse("what is this", argv[optind]);
    }
}

static void add(struct totals *totals, const struct run_result *result) {
    totals->seeds++;
    totals->events += result->events;
    totals->violations += result->violated != INVARIANT_NONE;
    totals->simulated += result->simulated;
    totals->acquired += result->acquired;
    totals->lost += result->lost;
    totals->failed += result->failed;
    totals->released += result->released;
    totals->fenced += result->fenced;
    totals->stayed += result->stayed;
    totals->raised += result->raised;
    totals->from_ranges += result->from_ranges;
    totals->permits_held += result->permits_held;
    totals->permits_second += result->permits_second;
    totals->permits_later += result->permits_later;
    totals->shared += result->shared;
    totals->looks += result->looks;
    totals->excused += result->excused;
    for (unsigned i = 0; i < WAITING_QUEUES; i++) {
        totals->waiting.queued[i] += result->waiting.queued[i];
    }
    totals->waiting.pushed += result->waiting.pushed;
    totals->waiting.taken += result->waiting.taken;
    totals->passed += result->passed;
    totals->handed_over += result->handed_over;
    totals->by_cause[result->cause].seeds++;
    totals->by_cause[result->cause].acquired += result->acquired;
    totals->by_cause[result->cause].overlaps += result->overlaps;
    totals->by_cause[result->cause].seeds_with_overlap += result->overlaps > 0;
}

static void print_violation(const struct options *options, uint64_t seed,
                            const struct run_result *result, const char *program) {
    fflush(stdout);
    fprintf(stderr, "seed %" PRIu64 ": invariant %d (%s): %s\n", seed, (int)result->violated,
            invariant_name(result->violated), result->violation);
    fprintf(stderr, "    again: %s --seeds %" PRIu64 " --profile %s%s --trace\n", program, seed,
            profile_name(options->demand.profile), options->demand.has_guards ? " --guards" : "");
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run_all(const struct options *options, const char *program, struct totals *totals) {
    double began = seconds_now();
    for (uint64_t seed = options->first;; seed++) {
        struct run_result result;
        alarm(options->limit_s);
        run_seed(seed, &options->demand, options->wants_trace ? stdout : NULL, &result);
        add(totals, &result);
        if (result.violated) {
            print_violation(options, seed, &result, program);
        }
        if (seed == options->last || (result.violated && options->stops_at_first)) {
            break;
        }
    }
    totals->seconds = seconds_now() - began;
}

/* Number of seeds within which requests must have waited in each queue. */
#define SEEDS_TO_WAIT 200

static bool complain_unless(uint64_t count, const char *what) {
    if (count == 0) {
        fprintf(stderr, "redlock-sim: nobody waits in all these worlds: no %s\n", what);
    }
    return count > 0;
}

/*
 * Reports whether requests waited in queues. If masters refuse all entries, or clients count no
 * push, waiting is polling, and no invariant is violated. A run that ended early may be too short.
 */
static bool have_waited(const struct options *options, const struct totals *totals) {
    static const char *const entries[WAITING_QUEUES] = {
        [WAITING_FOR_KEY] = "entry for a key",
        [WAITING_SEVERAL] = "entry for several keys",
        [WAITING_READERS] = "entry for a share",
        [WAITING_PERMITS] = "entry for a permit",
    };
    bool good = true;
    if (options->demand.profile == PROFILE_LOAD || totals->seeds < SEEDS_TO_WAIT) {
        return true;
    }
    for (unsigned i = 0; i < WAITING_QUEUES; i++) {
        good = complain_unless(totals->waiting.queued[i], entries[i]) && good;
    }
    good = complain_unless(totals->waiting.pushed, "key pushed to its waiter") && good;
    return complain_unless(totals->waiting.taken, "lock taken by pushes") && good;
}

static void print_json(const struct options *options, const struct totals *totals) {
    printf("{\"profile\": \"%s\", \"seeds\": %" PRIu64 ", \"events\": %" PRIu64
           ", \"acquired\": %" PRIu64 ", \"released\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"failed\": %" PRIu64 ", \"violations\": %" PRIu64
           ", \"seeds_per_s\": %.0f, \"simulated_s\": %.0f, \"fenced\": %" PRIu64
           ", \"raised\": %" PRIu64 ", \"from_ranges\": %" PRIu64 ", \"stayed\": %" PRIu64
           ", \"permits\": {\"acquired\": %" PRIu64 ", \"second\": %" PRIu64 ", \"later\": %" PRIu64
           "}, \"shared\": %" PRIu64 ", \"looks\": %" PRIu64 ", \"excused\": %" PRIu64
           ", \"passed\": %" PRIu64 ", \"handed_over\": %" PRIu64 ", \"pushed\": %" PRIu64
           ", \"taken\": %" PRIu64,
           profile_name(options->demand.profile), totals->seeds, totals->events, totals->acquired,
           totals->released, totals->lost, totals->failed, totals->violations,
           (double)totals->seeds / totals->seconds, (double)totals->simulated / 1e9, totals->fenced,
           totals->raised, totals->from_ranges, totals->stayed, totals->permits_held,
           totals->permits_second, totals->permits_later, totals->shared, totals->looks,
           totals->excused, totals->passed, totals->handed_over, totals->waiting.pushed,
           totals->waiting.taken);
    if (options->demand.profile == PROFILE_BROKEN) {
        fputs(", \"broken\": {", stdout);
        for (unsigned i = CAUSE_KEYS; i <= CAUSE_PAUSES; i++) {
            printf("%s\"%s\": {\"seeds\": %" PRIu64 ", \"acquired\": %" PRIu64
                   ", \"overlaps\": %" PRIu64 ", \"seeds_with_overlap\": %" PRIu64 "}",
                   i > 1 ? ", " : "", cause_name((enum cause)i), totals->by_cause[i].seeds,
                   totals->by_cause[i].acquired, totals->by_cause[i].overlaps,
                   totals->by_cause[i].seeds_with_overlap);
        }
        putchar('}');
    }
    puts("}");
}

static void print_summary(const struct options *options, const struct totals *totals) {
    printf("%" PRIu64 " seeds, %" PRIu64 " events, %.0f simulated seconds in %.1f s; %" PRIu64
           " acquired, %" PRIu64 " failed, %" PRIu64 " lost; %" PRIu64 " violations\n",
           totals->seeds, totals->events, (double)totals->simulated / 1e9, totals->seconds,
           totals->acquired, totals->failed, totals->lost, totals->violations);
    bool is_broken = options->demand.profile == PROFILE_BROKEN;
    for (unsigned i = CAUSE_KEYS; i <= CAUSE_PAUSES && is_broken; i++) {
        printf("%-14s %8" PRIu64 " acquired, of which %6" PRIu64
               " while another had the key (in %" PRIu64 " of %" PRIu64 " seeds)\n",
               cause_name((enum cause)i), totals->by_cause[i].acquired,
               totals->by_cause[i].overlaps, totals->by_cause[i].seeds_with_overlap,
               totals->by_cause[i].seeds);
    }
}

int main(int argc, char **argv) {
    struct options options;
    struct totals totals = {0};
    read_options(argc, argv, &options);
    if (options.wants_mutants) {
        return mutants_run(argv[0], options.last, options.part, options.parts);
    }
    if (options.mutant != NULL && !mutants_is(options.mutant)) {
        mutants_become(argv[0], options.mutant, argv);
    }
    run_all(&options, argv[0], &totals);
    if (options.wants_json) {
        print_json(&options, &totals);
    } else if (!options.wants_actions) {
        print_summary(&options, &totals);
    }
    return totals.violations > 0 || !have_waited(&options, &totals);
}
