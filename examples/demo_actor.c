#include "demo_actor.h"

#include "demo_screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A very long time: the actors have time limits of their own, and report when they reach them. */
#define HEAR_LIMIT_MS 180000

/* Actors that exit() must end. */
static LIST_HEAD(, actor) unfinished = LIST_HEAD_INITIALIZER(unfinished);

static void finish_at_exit(void) {
    while (!LIST_EMPTY(&unfinished)) {
        actor_finish(LIST_FIRST(&unfinished));
    }
}

/* Turns the child process into the program. Returns only on failure, with errno set. */
static void become(const char *const *argv, int channel, pid_t owner) {
    /* In a process group of its own: Ctrl-C interrupts the demo, which then ends its actors. */
    if (setpgid(0, 0) != 0 || dup2(channel, STDIN_FILENO) < 0 || dup2(channel, STDOUT_FILENO) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return;
    }
    /* The demo may have ended before the parent-death signal was set. */
    if (getppid() != owner) {
        _exit(EXIT_FAILURE);
    }
    execv(argv[0], (char *const *)argv);
}

static pid_t start_process(const char *const *argv, int channel) {
    pid_t owner = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        become(argv, channel, owner);
        dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

bool actor_start(struct actor *actor, const char *name, const char *const *argv) {
    static bool registered;
    int channel[2];

    *actor = (struct actor){.name = name};
    if (!registered && atexit(finish_at_exit) != 0) {
        fputs("atexit refused\n", stderr);
        return false;
    }
    registered = true;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0) {
        fprintf(stderr, "socketpair: %s\n", strerror(errno));
        return false;
    }
    actor->pid = start_process(argv, channel[1]);
    close(channel[1]);
    if (actor->pid < 0) {
        fprintf(stderr, "fork: %s\n", strerror(errno));
        close(channel[0]);
        actor->pid = 0;
        return false;
    }
    actor->channel = channel[0];
    LIST_INSERT_HEAD(&unfinished, actor, link);
    return true;
}

static int wait_for_change(const struct actor *actor, int flags) {
    int status;

    while (waitpid(actor->pid, &status, flags) < 0) {
        if (errno != EINTR) {
            fprintf(stderr, "waitpid: %s\n", strerror(errno));
            exit(EXIT_FAILURE);
        }
    }
    return status;
}

/* Forgets an actor that has ended and was reaped. */
static void forget(struct actor *actor) {
    LIST_REMOVE(actor, link);
    close(actor->channel);
    actor->pid = 0;
}

void actor_finish(struct actor *actor) {
    if (actor->pid != 0) {
        kill(actor->pid, SIGKILL);
        wait_for_change(actor, 0);
        forget(actor);
    }
}

/* ------------------------------------------------------------------------------------ its lines */

static void read_lines(struct actor *actor) {
    ssize_t got;

    if (actor->count == sizeof(actor->lines)) {
        actor->count = 0; /* the line is too long: drop it */
    }
    got = recv(actor->channel, actor->lines + actor->count, sizeof(actor->lines) - actor->count,
               MSG_DONTWAIT);
    if (got > 0) {
        actor->count += (size_t)got;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        actor->at_end = true;
    }
}

static size_t line_length(const struct actor *actor) {
    const char *end = memchr(actor->lines, '\n', actor->count);

    return end == NULL ? 0 : (size_t)(end - actor->lines) + 1;
}

/* A stage_condition: returns whether the actor in `subject` has a line or has ended. */
static bool has_line_or_ended(struct stage *stage) {
    struct actor *actor = stage->subject;

    if (line_length(actor) == 0 && !actor->at_end) {
        read_lines(actor);
    }
    return line_length(actor) != 0 || actor->at_end;
}

/* Waits for the next line, takes it and shows it. Returns false if no line came. */
static bool next_line(struct stage *stage, struct actor *actor) {
    size_t length;

    stage->subject = actor;
    if (!stage_run_until(stage, has_line_or_ended, HEAR_LIMIT_MS)) {
        say("%s says nothing for %d ms.", actor->name, HEAR_LIMIT_MS);
        return false;
    }
    length = line_length(actor);
    if (length == 0) {
        return false;
    }
    snprintf(actor->line, sizeof(actor->line), "%.*s", (int)length - 1, actor->lines);
    actor->count -= length;
    memmove(actor->lines, actor->lines + length, actor->count);
    say("  %s: %s", actor->name, actor->line);
    return true;
}

const char *actor_hear(struct stage *stage, struct actor *actor, const char *words) {
    while (next_line(stage, actor)) {
        if (strncmp(actor->line, words, strlen(words)) == 0) {
            return actor->line + strlen(words);
        }
    }
    if (actor->at_end) {
        say("%s has ended.", actor->name);
    }
    if (words[0] != '\0') {
        say("It did not say \"%s\".", words);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------ sending to it */

bool actor_stop(struct actor *actor) {
    int status;

    kill(actor->pid, SIGSTOP);
    status = wait_for_change(actor, WUNTRACED);
    if (WIFSTOPPED(status)) {
        return true;
    }
    forget(actor);
    return false;
}

/*
 * Sends the line before SIGCONT, so that the actor continues with the step at which it was stopped.
 */
bool actor_continue(struct actor *actor) {
    if (send(actor->channel, "\n", 1, MSG_NOSIGNAL) == 1 && kill(actor->pid, SIGCONT) == 0) {
        return true;
    }
    say("%s has ended.", actor->name);
    return false;
}

bool actor_ends_well(struct stage *stage, struct actor *actor) {
    int status;

    while (next_line(stage, actor)) {
    }
    if (!actor->at_end) { /* the actor does not end by itself */
        actor_finish(actor);
        return false;
    }
    status = wait_for_change(actor, 0);
    forget(actor);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
        return true;
    }
    say("%s ended with %s %d.", actor->name, WIFEXITED(status) ? "status" : "signal",
        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return false;
}

bool actor_dismiss(struct stage *stage, struct actor *actor) {
    kill(actor->pid, SIGTERM);
    return actor_ends_well(stage, actor);
}
