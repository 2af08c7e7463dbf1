#include "mutants.h"

#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All mutants, listed by the build (mutants/list.awk). */
static const struct mutant {
    const char *name;
    const char *profile; /* profile of the world that caught it last; NULL if none is recorded */
    uint64_t seed;
} mutants[] = {
#include "mutant_list.h"
};

#define MUTANT_COUNT (sizeof(mutants) / sizeof(mutants[0]))

/* Time limit of a mutant's process, by its own alarm: a mutant that hangs counts as caught. */
#define TIMEOUT_SECONDS "120"

/* Number of seeds of each profile to run before more seeds of any one profile. */
#define SOON 100

/* Environment variable with the mutant's name, in a program that has become a mutant. */
#define IS_MUTANT "REDLOCK_SIM_MUTANT"

struct outcome {
    bool is_caught;
    const char *profile;
    char seed[24];
    char by[256];
};

static void path_of(const char *program, const char *name, char path[PATH_MAX]) {
    const char *slash = strrchr(program, '/');
    int length = slash != NULL ? (int)(slash - program) : 1;
    snprintf(path, PATH_MAX, "%.*s/mutants/%s", length, slash != NULL ? program : ".", name);
}

bool mutants_is(const char *name) {
    const char *mine = getenv(IS_MUTANT);
    return mine != NULL && strcmp(mine, name) == 0;
}

void mutants_become(const char *program, const char *name, char **arguments) {
    char path[PATH_MAX];
    path_of(program, name, path);
    setenv(IS_MUTANT, name, true);
    execv(path, arguments);
    fprintf(stderr, "redlock-sim: there is no mutant \"%s\" (%s: %s); there are:\n", name, path,
            strerror(errno));
    for (size_t i = 0; i < MUTANT_COUNT; i++) {
        fprintf(stderr, "    %s\n", mutants[i].name);
    }
    exit(2);
}

/* Reads the violation from lines such as "seed 12: invariant 3 (callbacks): ..." */
static void read_outcome(FILE *output, struct outcome *outcome) {
    char line[512];
    while (fgets(line, sizeof(line), output) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "seed %23[0-9]: %255[^\n]", outcome->seed, outcome->by) == 2) {
            outcome->is_caught = true;
        }
    }
}

/* Reads the status of a mutant that ended by itself, not by an invariant. */
static void read_status(int status, struct outcome *outcome) {
    if (WIFSIGNALED(status)) {
        outcome->is_caught = true;
        snprintf(outcome->seed, sizeof(outcome->seed), "?");
        snprintf(outcome->by, sizeof(outcome->by), "%s",
                 WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
    }
}

/* Runs a mutant in the worlds of the seeds `first` to `last`. */
static void run(const char *path, const char *profile, uint64_t first, uint64_t last,
                struct outcome *outcome) {
    char range[64];
    int ends[2];
    snprintf(range, sizeof(range), "%" PRIu64 "..%" PRIu64, first, last);
    *outcome = (struct outcome){.profile = profile};
    if (pipe(ends) != 0) {
        perror("pipe");
        exit(2);
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl(path, path, "--seeds", range, "--profile", profile, "--first", "--limit",
              TIMEOUT_SECONDS, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    int status = 0;
    if (child < 0 || output == NULL) {
        perror("fork");
        exit(2);
    }
    read_outcome(output, outcome);
    fclose(output);
    waitpid(child, &status, 0);
    read_status(status, outcome);
    if (WIFEXITED(status) && WEXITSTATUS(status) > 1) {
        fprintf(stderr, "redlock-sim: %s does not run\n", path);
        exit(2);
    }
}

/*
 * Searches for a world that catches the mutant: first the recorded one, which may miss it since
 * worlds change with the library; then a few worlds of each profile, which catch most mutants; last
 * all worlds. Worlds of load come last, because they take longest.
 */
static void search(const char *path, const struct mutant *mutant, uint64_t seeds,
                   struct outcome *outcome) {
    static const char *const profiles[] = {"kept",   "guarded",  "moving",
                                           "broken", "distance", "load"};
    const unsigned count = sizeof(profiles) / sizeof(profiles[0]);
    const uint64_t spans[] = {seeds < SOON ? seeds : SOON, seeds};
    outcome->is_caught = false;
    if (mutant->profile != NULL) {
        run(path, mutant->profile, mutant->seed, mutant->seed, outcome);
    }
    for (unsigned i = 0; i < 2 * count && !outcome->is_caught; i++) {
        run(path, profiles[(i + i / count) % count], 1, spans[i / count], outcome);
    }
}

/* Returns whether the same world also fails the library without the mutation. */
static bool is_caught_without(const char *program, const struct outcome *outcome) {
    struct outcome without = {.is_caught = false};
    char *end;
    uint64_t seed = strtoull(outcome->seed, &end, 10);
    if (outcome->seed[0] != '\0' && *end == '\0') { /* a mutant that hangs or crashes has no seed */
        run(program, outcome->profile, seed, seed, &without);
    }
    return without.is_caught;
}

/*
 * Searches for a world and prints the outcome as one line. Returns whether the mutant was caught.
 */
static bool report(const char *program, const struct mutant *mutant, uint64_t seeds) {
    struct outcome outcome;
    char path[PATH_MAX];
    path_of(program, mutant->name, path);
    search(path, mutant, seeds, &outcome);
    if (outcome.is_caught && is_caught_without(program, &outcome)) {
        outcome.is_caught = false;
        printf("USELESS  %-30s %s seed %s: the library itself is caught there\n", mutant->name,
               outcome.profile, outcome.seed);
    } else if (outcome.is_caught) {
        printf("caught   %-30s %s seed %s: %s\n", mutant->name, outcome.profile, outcome.seed,
               outcome.by);
    } else {
        printf("MISSED   %-30s in %" PRIu64 " seeds of each profile\n", mutant->name, seeds);
    }
    fflush(stdout);
    return outcome.is_caught;
}

/* Waits for one of the searching processes. Returns whether its mutant was caught. */
static bool await_one(void) {
    int status;
    if (wait(&status) < 0) {
        perror("wait");
        exit(2);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        exit(2);
    }
    return WEXITSTATUS(status) == 0;
}

int mutants_run(const char *program, uint64_t seeds, unsigned part, unsigned parts) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    /* Parts are tests, which the test runner distributes over the cores. */
    const unsigned most = parts == 1 && cores > 0 ? (unsigned)cores : 1;
    unsigned caught = 0, searching = 0, count = 0;
    for (size_t i = part - 1; i < MUTANT_COUNT; i += parts) {
        count++;
        if (searching == most) {
            caught += await_one();
            searching--;
        }
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            exit(2);
        }
        if (child == 0) {
            exit(report(program, &mutants[i], seeds) ? 0 : 1);
        }
        searching++;
    }
    for (; searching > 0; searching--) {
        caught += await_one();
    }
    printf("%u of %u mutants caught\n", caught, count);
    return caught < count;
}
