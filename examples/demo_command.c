/* The command `redlock`, as people type it, and its effects. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "demo"
#define NO_QUORUM 69
#define NOT_ACQUIRED 75
#define LOST 76

/* Sets PATH, so that a shell finds the command, and the variable with the command's nodes. */
static bool set_environment(struct stage *stage) {
    char nodes[STAGE_MASTERS * 96] = "";
    char path[4096];
    size_t length = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        length += (size_t)snprintf(nodes + length, sizeof(nodes) - length, "%s%s?durable=yes",
                                   i == 0 ? "" : ",", masters_uri(stage->masters, i));
    }
    snprintf(path, sizeof(path), "%s:%s", REDLOCK_FOLDER, getenv("PATH"));
    return setenv("REDLOCK_NODES", nodes, 1) == 0 && setenv("PATH", path, 1) == 0;
}

/* Shows a command line and starts it in a shell. */
static pid_t start(const char *line) {
    pid_t parent = getpid();
    pid_t pid;

    say("$ %s", line);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent) {
            dup2(STDOUT_FILENO, STDERR_FILENO);
            execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        }
        _exit(EXIT_FAILURE);
    }
    return pid;
}

static int wait_for(pid_t pid) {
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

static bool ends_with(const char *line, int code, const char *statement) {
    return check(wait_for(start(line)) == code, statement);
}

static bool run_commands(struct stage *stage) {
    return check(set_environment(stage), "REDLOCK_NODES names the five masters") &&
           ends_with("redlock run demo -- sh -c 'echo held; sleep 1'", 0,
                     "the command ran under the lock") &&
           ends_with("redlock run --fence demo -- sh -c 'echo my fence is $REDLOCK_FENCE; exit 7'",
                     7, "the exit code is the command's");
}

static bool meet_others(struct stage *stage) {
    (void)stage;
    return ends_with("redlock run --owner first demo -- redlock run --no-wait demo -- echo never",
                     NOT_ACQUIRED, "others hold it: exit code 75") &&
           ends_with("redlock run --owner first demo -- redlock inspect demo", 0,
                     "an inspection names the holder");
}

static bool is_held(struct stage *stage) {
    return look_all_answer(stage, "EXISTS " KEY, "1");
}

/* Stops a quorum of masters under a command that ignores SIGTERM. */
static bool lose_the_lock(struct stage *stage) {
    pid_t pid = start("redlock run --ttl 4s demo -- sh -c \"trap '' TERM; "
                      "while :; do sleep 0.1; done\"");
    bool was_held = stage_run_until(stage, is_held, STAGE_TIMEOUT_MS);
    int code;

    masters_stop_range(stage->masters, 0, STAGE_QUORUM);
    say("Three masters were stopped (SIGSTOP): the lock cannot be renewed.");
    code = wait_for(pid);
    masters_continue_range(stage->masters, 0, STAGE_QUORUM);
    return check(was_held, "the command had the lock") &&
           check(code == LOST, "it ignored SIGTERM, and was killed before the lock ended: code 76");
}

static bool ask_the_doctor(struct stage *stage) {
    bool is_fit = wait_for(start("redlock doctor | tail -n 2")) == 0 &&
                  ends_with("redlock doctor >/dev/null", 0, "the nodes are fit: exit code 0");

    for (size_t i = 0; i < STAGE_QUORUM; i++) {
        masters_kill(stage->masters, i);
    }
    say("Three masters were killed.");
    return is_fit && ends_with("redlock doctor >/dev/null", NO_QUORUM, "no quorum: exit code 69");
}

static const struct step steps[] = {
    {"Run a command under a lock", run_commands},
    {"Only one at a time", meet_others},
    {"A lock that cannot be renewed", lose_the_lock},
    {"The doctor", ask_the_doctor},
};

bool demo_command(struct stage *stage) {
    return stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);
}
