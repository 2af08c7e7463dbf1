#include "hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 24

int hosts_enter(const struct hosts *hosts, size_t host) {
    return setns(hosts->each[host], CLONE_NEWNET);
}

/* Turns a child into the command. */
static _Noreturn void become(int namespace, char *line, bool quiet) {
    char *words[MAX_WORDS + 1] = {NULL};
    size_t count = 0;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    while (line != NULL && count < MAX_WORDS) {
        words[count++] = strsep(&line, " ");
    }
    if (setns(namespace, CLONE_NEWNET) == 0) {
        if (quiet) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        execvp(words[0], words);
    }
    dprintf(STDERR_FILENO, "redlock-chaos: %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static int run_line(int namespace, bool quiet, const char *format, va_list values) {
    char line[256];
    int status = -1;
    pid_t pid;

    vsnprintf(line, sizeof(line), format, values);
    pid = fork();
    if (pid == 0) {
        become(namespace, line, quiet);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs one command, words separated by spaces, in a namespace; returns its exit code. */
static int run(int namespace, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int run(int namespace, const char *format, ...) {
    va_list values;
    int code;

    va_start(values, format);
    code = run_line(namespace, false, format, values);
    va_end(values);
    return code;
}

/* Runs a command as `run` does, without output: the command may fail. */
static int try(int namespace, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int try(int namespace, const char *format, ...) {
    va_list values;
    int code;

    va_start(values, format);
    code = run_line(namespace, true, format, values);
    va_end(values);
    return code;
}

/*
 * Makes a namespace, which the caller does not enter. Returns its descriptor, or -1 with errno set.
 */
static int make_namespace(void) {
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int made = -1;

    if (home < 0) {
        return -1;
    }
    if (unshare(CLONE_NEWNET) == 0) {
        made = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (setns(home, CLONE_NEWNET) != 0) {
            perror("redlock-chaos: cannot come back from a namespace");
            exit(EXIT_FAILURE);
        }
    }
    close(home);
    return made;
}

static int make_bridge(const struct hosts *hosts, const char *name) {
    return run(hosts->middle, "ip link add %s type bridge forward_delay 0 stp_state 0", name) ==
                       0 &&
                   run(hosts->middle, "ip link set %s up", name) == 0
               ? 0
               : -1;
}

static int join(struct hosts *hosts, size_t host) {
    int here = hosts->each[host];

    snprintf(hosts->addresses[host], sizeof(hosts->addresses[host]), "10.77.%d.%zu",
             host < MASTERS ? 1 : 2, host + 1);
    return run(hosts->middle, "ip link add port%zu type veth peer name eth0 netns /proc/%d/fd/%d",
               host, (int)getpid(), here) == 0 &&
                   run(hosts->middle, "ip link set port%zu master near up", host) == 0 &&
                   run(here, "ip addr add %s/16 dev eth0", hosts->addresses[host]) == 0 &&
                   run(here, "ip link set eth0 up") == 0 && run(here, "ip link set lo up") == 0
               ? 0
               : -1;
}

static bool is_there(int namespace, const char *program, const char *package) {
    if (try(namespace, "%s -V", program) == 0) {
        return true;
    }
    fprintf(stderr, "redlock-chaos: --hosts needs \"%s\" (package %s)\n", program, package);
    return false;
}

int hosts_start(struct hosts *hosts, size_t count) {
    *hosts = (struct hosts){.count = count};
    if (geteuid() != 0) {
        fputs("redlock-chaos: --hosts needs root, to make network namespaces\n", stderr);
        return -1;
    }
    hosts->middle = make_namespace();
    for (size_t i = 0; hosts->middle >= 0 && i < count; i++) {
        hosts->each[i] = make_namespace();
        if (hosts->each[i] < 0) {
            hosts->middle = -1;
        }
    }
    if (hosts->middle < 0) {
        fprintf(stderr, "redlock-chaos: cannot make a network namespace: %s\n", strerror(errno));
        return -1;
    }
    if (!is_there(hosts->middle, "ip", "iproute2") || !is_there(hosts->middle, "tc", "iproute2") ||
        make_bridge(hosts, "near") != 0 || make_bridge(hosts, "far") != 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (join(hosts, i) != 0) {
            return -1;
        }
    }
    hosts->has_netem = try(hosts->each[0], "tc qdisc replace dev eth0 root netem delay 1ms") == 0 &&
                       try(hosts->each[0], "tc qdisc del dev eth0 root") == 0;
    return 0;
}

void hosts_cut(const struct hosts *hosts, size_t host, bool alone) {
    if (alone) {
        run(hosts->middle, "ip link set port%zu down", host);
    } else {
        run(hosts->middle, "ip link set port%zu master far", host);
    }
}

void hosts_delay(const struct hosts *hosts, size_t host, uint32_t ms) {
    run(hosts->each[host], "tc qdisc replace dev eth0 root netem delay %ums %ums", ms, ms / 4);
}

void hosts_lose(const struct hosts *hosts, size_t host, uint32_t percent) {
    run(hosts->each[host], "tc qdisc replace dev eth0 root netem loss %u%%", percent);
}

void hosts_heal(const struct hosts *hosts, size_t host) {
    run(hosts->middle, "ip link set port%zu master near up", host);
    if (hosts->has_netem) {
        try(hosts->each[host], "tc qdisc del dev eth0 root");
    }
}
