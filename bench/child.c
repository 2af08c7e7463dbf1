#include "child.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READER, WRITER };

static struct child *running;

static _Noreturn void become_child(int (*run)(void *arg), void *arg, const int input[2],
                                   const int output[2]) {
    /* The handlers of the parent's event loop would notify the parent, which would end the run. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    /* Another process of this kind would not end while this one has its input. */
    if (dup2(input[READER], STDIN_FILENO) < 0 || dup2(output[WRITER], STDOUT_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0U, 0) != 0) {
        perror("redlock-bench: cannot start a process");
        _exit(EXIT_FAILURE);
    }
    _exit(run(arg));
}

/* Waits for the line of ports, which comes when all are open. */
static bool read_ports(int output, size_t count, int *ports) {
    FILE *line = fdopen(output, "re");
    size_t known = 0;

    if (line == NULL) {
        close(output);
        return false;
    }
    while (known < count && fscanf(line, "%d", &ports[known]) == 1) {
        known++;
    }
    fclose(line);
    return known == count;
}

static void finish_all(void) {
    while (running != NULL && running->owner == getpid()) {
        child_finish(running);
    }
}

static void add(struct child *child) {
    static bool is_registered;

    if (!is_registered && atexit(finish_all) != 0) {
        memory_end();
    }
    is_registered = true;
    child->next = running;
    running = child;
}

bool child_start(struct child *child, int (*run)(void *arg), void *arg, size_t count, int *ports) {
    int input[2];
    int output[2];

    *child = (struct child){.owner = getpid()};
    if (pipe2(input, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(output, O_CLOEXEC) != 0) {
        close(input[READER]);
        close(input[WRITER]);
        return false;
    }
    child->pid = fork();
    if (child->pid == 0) {
        become_child(run, arg, input, output);
    }
    close(input[READER]);
    close(output[WRITER]);
    if (child->pid < 0) {
        child->pid = 0;
        close(input[WRITER]);
        close(output[READER]);
        return false;
    }
    child->input = input[WRITER];
    add(child);
    if (!read_ports(output[READER], count, ports)) {
        child_finish(child);
        return false;
    }
    return true;
}

void child_finish(struct child *child) {
    struct child **link = &running;

    if (child->pid == 0) {
        return;
    }
    while (*link != child) {
        link = &(*link)->next;
    }
    *link = child->next;
    close(child->input);
    kill(child->pid, SIGTERM); /* forks of this process may still have its input */
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    child->pid = 0;
}
