/*
 * Torture: the n-th request for a service fails, for every n, in every scenario. Each combination
 * of scenario and kind of failure is a case, swept in a separate process, so that a crash or a hang
 * is one failed case, reported with the command that repeats its run.
 *
 *   torture [--kind KIND] [--scenario NAME] [--part I/N]    TAP; of every N cases the I-th
 *   torture --scenario NAME --kind KIND --n N [--form F]    this run alone
 *   torture --list
 */
#include "faults.h"
#include "scenarios.h"
#include "sweep.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The parsed command line. */
struct order {
    const char *scenario; /* NULL: all */
    const char *kind;
    unsigned n; /* 0: all */
    unsigned form;
    unsigned part, parts; /* this part of the cases, from 1; parts is 0: all cases */
    bool lists;
};

static struct progress *progress;

/* Turns off the leak check at the end of a process: each sweep checks at its own end. */
const char *__asan_default_options(void);
const char *__lsan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_leaks=1:leak_check_at_exit=0:quarantine_size_mb=1";
}

/* Repeats the option for LeakSanitizer, which reads it here if coverage is measured. */
const char *__lsan_default_options(void) {
    return "leak_check_at_exit=0";
}

/* ---- a case ---- */

static int sweep_apart(const struct scenario *scenario, enum fault fault, unsigned forms,
                       bool looks_each_time) {
    int status;
    *progress = (struct progress){0};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        exit((int)sweep_all(scenario, fault, forms, progress, looks_each_time));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static bool has_leaked(int status) {
    return WIFEXITED(status) && WEXITSTATUS(status) == SWEEP_LEAKED;
}

static void say_how(const struct scenario *scenario, enum fault fault, int status) {
    if (WIFSIGNALED(status)) {
        printf("# ended by signal %d%s\n", WTERMSIG(status),
               WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    } else if (has_leaked(status)) {
        printf("# leaked\n");
    }
    printf("# again: torture --scenario %s --kind %s --n %u --form %u\n", scenario->name,
           fault_name(fault), progress->n, progress->form);
}

/* Runs a case in the first `forms` forms. Returns whether it passed. */
static bool run_case(const struct scenario *scenario, enum fault fault, unsigned forms,
                     unsigned index) {
    int status = sweep_apart(scenario, fault, forms, false);
    unsigned sites = progress->sites;
    if (has_leaked(status)) { /* sweep again to find the run */
        status = sweep_apart(scenario, fault, forms, true);
    }
    bool passed = WIFEXITED(status) && WEXITSTATUS(status) == SWEEP_PASSED;
    printf("%s %u - %s: %s, %u places\n", passed ? "ok" : "not ok", index, scenario->name,
           fault_name(fault), sites);
    if (!passed) {
        say_how(scenario, fault, status);
    }
    return passed;
}

/* ---- the command line ---- */

static bool is_wanted(const char *wanted, const char *name) {
    return wanted == NULL || strcmp(wanted, name) == 0;
}

/*
 * Returns in how many forms a kind of failure is tried in a scenario; 0: not at all. Each scenario
 * creates the pollable loop alike, and most of what it watches are the first connections.
 */
static unsigned forms_for(unsigned scenario, enum fault fault) {
    bool is_connecting = scenario < theme_connecting.count;
    if (!fault_is_of_loop(fault)) {
        return sweep_form_count;
    }
    if (fault == FAULT_EPOLL_CTL) {
        return is_connecting ? sweep_form_count : 1;
    }
    return is_connecting ? 1 : 0;
}

static bool is_in_part(const struct order *order, unsigned scenario) {
    return order->parts == 0 || scenario % order->parts == order->part - 1;
}

static bool run_kind(const struct order *order, enum fault fault, unsigned *cases) {
    const char *lack = fault_lack(fault);
    bool passed = true;
    if (!is_wanted(order->kind, fault_name(fault))) {
        return true;
    }
    if (lack != NULL) {
        printf("ok %u - %s # SKIP %s\n", ++*cases, fault_name(fault), lack);
        return true;
    }
    const struct scenario *scenario;
    for (unsigned i = 0; (scenario = scenario_at(i)) != NULL; i++) {
        if (is_wanted(order->scenario, scenario->name) && is_in_part(order, i) &&
            forms_for(i, fault) > 0) {
            passed &= run_case(scenario, fault, forms_for(i, fault), ++*cases);
        }
    }
    return passed;
}

static int run_all(const struct order *order) {
    unsigned cases = 0;
    bool passed = true;
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        passed &= run_kind(order, (enum fault)fault, &cases);
    }
    printf("1..%u\n", cases);
    return passed && cases > 0 ? 0 : 1;
}

static int run_one(const struct order *order) {
    const struct scenario *scenario;
    for (unsigned i = 0; (scenario = scenario_at(i / FAULT_COUNT)) != NULL; i++) {
        enum fault fault = (enum fault)(i % FAULT_COUNT);
        if (is_wanted(order->scenario, scenario->name) &&
            is_wanted(order->kind, fault_name(fault))) {
            bool was_made = sweep_run(scenario, fault, &sweep_forms[order->form], order->n);
            printf("passed; the request %s\n", was_made ? "failed" : "was never made");
            return 0;
        }
    }
    fprintf(stderr, "torture: there is no such scenario or kind; see --list\n");
    return 2;
}

static int list(void) {
    const struct scenario *scenario;
    for (unsigned i = 0; (scenario = scenario_at(i)) != NULL; i++) {
        printf("--scenario %s\n", scenario->name);
    }
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        printf("--kind %s\n", fault_name((enum fault)fault));
    }
    return 0;
}

/* Parses "I/N", two numbers from 1. */
static bool read_part(const char *text, struct order *order) {
    char end;
    return sscanf(text, "%u/%u%c", &order->part, &order->parts, &end) == 2 && order->part >= 1 &&
           order->part <= order->parts;
}

/* Parses the arguments. Returns false when they are invalid. */
static bool read_order(int argc, char **argv, struct order *order) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--list") == 0) {
            order->lists = true;
            continue;
        }
        if (value == NULL) {
            return false;
        }
        if (strcmp(argv[i], "--scenario") == 0) {
            order->scenario = value;
        } else if (strcmp(argv[i], "--kind") == 0) {
            order->kind = value;
        } else if (strcmp(argv[i], "--n") == 0) {
            order->n = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--form") == 0) {
            order->form = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--part") == 0) {
            if (!read_part(value, order)) {
                return false;
            }
        } else {
            return false;
        }
        i++;
    }
    return order->form < sweep_form_count &&
           (order->n == 0 || (order->scenario != NULL && order->kind != NULL));
}

int main(int argc, char **argv) {
    struct order order = {0};
    if (!read_order(argc, argv, &order)) {
        fprintf(
            stderr,
            "usage: torture [--scenario NAME] [--kind KIND] [--part I/N] [--n N] [--form 0..%u]\n"
            "       torture --list\n",
            sweep_form_count - 1);
        return 2;
    }
    progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(progress != MAP_FAILED);
    faults_init();
    return order.lists ? list() : order.n > 0 ? run_one(&order) : run_all(&order);
}
