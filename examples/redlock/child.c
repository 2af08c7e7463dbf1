/*
 * The child waits on a pipe until its group has the terminal. If the parent dies, the pipe's other
 * end closes and the child ends. After that PDEATHSIG ends the command's first process, even if the
 * group cannot be tethered (tether.h), or the process has left the group.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Sets the variables that describe the lock to the command. Several keys are separated by newlines.
 */
static int set_environment(const redlock_lock *lock, uint64_t valid_until_ms) {
    char number[24];
    char *keys = NULL;
    size_t size = 0;
    size_t length;
    FILE *stream = open_memstream(&keys, &size);
    const char *key;

    if (stream == NULL) {
        return -1;
    }
    for (size_t i = 0; (key = redlock_key_at(lock, i, &length)) != NULL; i++) {
        fprintf(stream, "%s%.*s", i == 0 ? "" : "\n", (int)length, key);
    }
    if (fclose(stream) != 0 || setenv("REDLOCK_KEY", keys, 1) != 0) {
        return -1;
    }
    free(keys);
    snprintf(number, sizeof(number), "%" PRIu64, valid_until_ms);
    setenv("REDLOCK_VALID_UNTIL", number, 1);
    if (redlock_fence(lock) == 0) {
        return unsetenv("REDLOCK_FENCE");
    }
    snprintf(number, sizeof(number), "%" PRIu64, redlock_fence(lock));
    return setenv("REDLOCK_FENCE", number, 1);
}

/* Becomes the command when the parent says so. Returns only on failure, with errno set. */
static void become_command(const struct job *job, pid_t parent, int go) {
    char byte;

    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return;
    }
    /* The parent may have died before the death signal was set. */
    if (getppid() != parent || read(go, &byte, 1) != 1) {
        _exit(EXIT_FAILURE);
    }
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0 ||
        sigprocmask(SIG_SETMASK, &job->mask, NULL) != 0) {
        return;
    }
    execvp(job->command[0], job->command);
}

static void close_both(const int pipe_ends[2]) {
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int child_start(struct child *child, const struct job *job, const redlock_lock *lock,
                uint64_t valid_until_ms) {
    int go[2];
    int failure[2];
    pid_t parent = getpid();

    if (set_environment(lock, valid_until_ms) != 0 || pipe2(go, O_CLOEXEC) != 0) {
        return -1;
    }
    if (pipe2(failure, O_CLOEXEC) != 0) {
        close_both(go);
        return -1;
    }
    child->pid = fork();
    if (child->pid == 0) {
        close(go[1]);
        signal(SIGCHLD, SIG_DFL); /* drops the parent's handler */
        become_command(job, parent, go[0]);
        int cause = errno;
        _exit(write(failure[1], &cause, sizeof(cause)) == sizeof(cause) ? 127 : 126);
    }
    close(go[0]);
    close(failure[1]);
    child->go = go[1];
    child->failure = failure[0];
    if (child->pid < 0) {
        child_finish(child);
        return -1;
    }
    setpgid(child->pid, child->pid); /* parent and child both call it */
    return 0;
}

void child_go(struct child *child) {
    if (child->go >= 0) {
        (void)!write(child->go, "", 1);
        close(child->go);
        child->go = -1;
    }
}

void child_finish(struct child *child) {
    if (child->go >= 0) {
        close(child->go);
    }
    if (child->failure >= 0) {
        close(child->failure);
    }
    child->go = child->failure = -1;
}
