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

/* Names of all mutants, from the build. */
static const char *const names[] = {MUTANTS NULL};

/* Time limit of a mutant's process, by its own alarm clock: a mutant that hangs is caught. */
#define PATIENCE_SECONDS "120"

/* Number of seeds of each profile that are run before more seeds of one of them. */
#define SOON 100

/* Environment variable of a program that has become a mutant: its name. */
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
    for (unsigned i = 0; names[i] != NULL; i++) {
        fprintf(stderr, "    %s\n", names[i]);
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
        execl(path, path, "--seeds", range, "--profile", profile, "--first", "--patience",
              PATIENCE_SECONDS, (char *)NULL);
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
 * Hunts a mutant where it was caught once, of those that few worlds catch. A world changes with the
 * library, so that this may fail.
 */
static void hunt_there(const char *path, const char *name, struct outcome *outcome) {
    static const struct {
        const char *name, *profile;
        uint64_t seed;
    } worlds[] = {
        {"guard-marker-of-another", "guarded", 337},
        {"guard-failback-unseen", "guarded", 337},
        {"guard-swap-unseen", "guarded", 297},
        {"guard-never-ages", "guarded", 8138},
        {"guard-counts-from-contact", "guarded", 13061},
        {"guard-uptime-unsigned", "guarded", 1311},
        {"push-by-the-middle", "guarded", 230},
        {"push-jump-unchecked", "guarded", 685},
        {"push-of-the-untrusted", "guarded", 547},
        {"polls-put-off-yields", "moving", 17},
        {"renewal-after-end", "moving", 101},
        {"renewal-not-hurried", "load", 250},
        {"turn-without-bound", "load", 48},
        {"fence-top-up-uncounted", "broken", 172},
        {"told-for-ever", "kept", 425},
    };
    for (unsigned i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        if (strcmp(worlds[i].name, name) == 0) {
            run(path, worlds[i].profile, worlds[i].seed, worlds[i].seed, outcome);
        }
    }
}

/*
 * Hunts a mutant. Most are caught soon by one of the profiles; the others seldom, but by the second
 * or third profile.
 */
static void hunt(const char *path, const char *name, uint64_t seeds, struct outcome *outcome) {
    static const char *const profiles[] = {"kept", "guarded", "load", "moving", "broken"};
    const unsigned count = sizeof(profiles) / sizeof(profiles[0]);
    const uint64_t spans[] = {seeds < SOON ? seeds : SOON, seeds};
    outcome->is_caught = false;
    hunt_there(path, name, outcome);
    for (unsigned i = 0; i < 2 * count && !outcome->is_caught; i++) {
        run(path, profiles[(i + i / count) % count], 1, spans[i / count], outcome);
    }
}

int mutants_run_all(const char *program, uint64_t seeds) {
    unsigned caught = 0, total = 0;
    char path[PATH_MAX];
    for (; names[total] != NULL; total++) {
        struct outcome outcome;
        path_of(program, names[total], path);
        hunt(path, names[total], seeds, &outcome);
        caught += outcome.is_caught;
        if (outcome.is_caught) {
            printf("caught   %-30s %s seed %s: %s\n", names[total], outcome.profile, outcome.seed,
                   outcome.by);
        } else {
            printf("MISSED   %-30s in %" PRIu64 " seeds of each profile\n", names[total], seeds);
        }
        fflush(stdout);
    }
    printf("%u of %u mutants caught\n", caught, total);
    return caught < total;
}
