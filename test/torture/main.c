/*
 * torture: each scenario runs again and again; first its first allocation fails, then its second,
 * and so on until it has no more; likewise for other calls. Each time once alone, and once with
 * the two calls after it.
 */
#include "scenarios.h"

#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No scenario makes so many calls. */
#define CALLS_MAX 20000

static char folder[] = "/tmp/redlock-torture-XXXXXX";

static void remove_folder(void) {
    rmdir(folder);
}

static int open_descriptors(void) {
    DIR *open = opendir("/proc/self/fd");
    int count = 0;
    while (open != NULL && readdir(open) != NULL) {
        count++;
    }
    if (open != NULL) {
        closedir(open);
    }
    return count;
}

/* One run. False when nothing had failed: there is no such call. `problem` is "" when all is well.
 */
static bool run(const struct scenario *scenario, enum fault_kind kind, size_t first, size_t width,
                char problem[256]) {
    static struct rig rig;
    int descriptors = open_descriptors();
    rig_begin(&rig, scenario->servers, folder);
    fault_arm(kind, first, first + width - 1);
    scenario->run(&rig);
    bool has_failed = fault_disarm();
    rig_end(&rig);
    if (open_descriptors() != descriptors) {
        rig_complain(&rig, "a descriptor is left open");
    }
    memcpy(problem, rig.problem, 256);
    return has_failed;
}

static void complain(const struct scenario *scenario, enum fault_kind kind, size_t first,
                     size_t width, const char *problem) {
    printf("# %s, %s %zu to %zu: %s\n", scenario->name, fault_name(kind), first, first + width - 1,
           problem);
    printf("# again: torture --scenario %s --kind %s --n %zu --width %zu\n", scenario->name,
           fault_name(kind), first, width);
}

/* Up to the first n at which something is wrong. */
static bool run_all_n(const struct scenario *scenario, enum fault_kind kind, size_t width,
                      size_t *runs) {
    bool has_failed = true;
    for (size_t n = 1; has_failed && n < CALLS_MAX; n++) {
        char problem[256];
        has_failed = run(scenario, kind, n, width, problem);
        (*runs)++;
        if (problem[0] != '\0') {
            complain(scenario, kind, n, width, problem);
            return false;
        }
    }
    return true;
}

/* ---- as a test ---- */

static int run_all(void) {
    unsigned number = 0;
    bool good = true;
    printf("1..%u\n", scenario_count * (FAULT_COUNT - 1));
    for (enum fault_kind kind = FAULT_ALLOCATION; kind < FAULT_COUNT; kind++) {
        const char *why_not = fault_why_not(kind);
        for (unsigned i = 0; i < scenario_count; i++) {
            size_t runs = 0;
            bool passed = why_not != NULL || (run_all_n(&scenarios[i], kind, 1, &runs) &&
                                              run_all_n(&scenarios[i], kind, 3, &runs));
            printf("%sok %u - %s, %s, %zu runs", passed ? "" : "not ", ++number, scenarios[i].name,
                   fault_name(kind), runs);
            printf(why_not != NULL ? " # SKIP %s\n" : "\n", why_not);
            fflush(stdout);
            good = good && passed;
        }
    }
    return good ? 0 : 1;
}

/* ---- by hand ---- */

static const struct scenario *find_scenario(const char *name) {
    for (unsigned i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            return &scenarios[i];
        }
    }
    fprintf(stderr, "torture: there is no scenario \"%s\"; there are:\n", name);
    for (unsigned i = 0; i < scenario_count; i++) {
        fprintf(stderr, "    %s\n", scenarios[i].name);
    }
    exit(2);
}

static enum fault_kind find_kind(const char *name) {
    for (enum fault_kind kind = FAULT_NONE; kind < FAULT_COUNT; kind++) {
        if (strcmp(fault_name(kind), name) == 0) {
            return kind;
        }
    }
    fprintf(stderr, "torture: \"%s\" is no kind of failure\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    static const struct option known[] = {{"scenario", required_argument, NULL, 's'},
                                          {"kind", required_argument, NULL, 'k'},
                                          {"n", required_argument, NULL, 'n'},
                                          {"width", required_argument, NULL, 'w'},
                                          {"log", no_argument, NULL, 'l'},
                                          {NULL, 0, NULL, 0}};
    const struct scenario *scenario = NULL;
    enum fault_kind kind = FAULT_NONE;
    size_t n = 1, width = 1;
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 's':
            scenario = find_scenario(optarg);
            break;
        case 'k':
            kind = find_kind(optarg);
            break;
        case 'n':
            n = strtoul(optarg, NULL, 10);
            break;
        case 'w':
            width = strtoul(optarg, NULL, 10);
            break;
        case 'l':
            rig_log_level = REDLOCK_LOG_DEBUG;
            break;
        default:
            fprintf(stderr, "usage: torture [--scenario NAME --kind KIND --n N --width W --log]\n");
            return 2;
        }
    }
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 2;
    }
    atexit(remove_folder);
    signal(SIGPIPE, SIG_IGN);
    if (scenario == NULL) {
        return run_all();
    }
    char problem[256];
    fault_why_not(kind);
    bool has_failed = run(scenario, kind, n, width, problem);
    printf("%s: %s\n", has_failed ? "it failed" : "there is no such call",
           problem[0] != '\0' ? problem : "all is well");
    return problem[0] != '\0';
}
