#include "stage.h"

#include "actions_log.h"
#include "chance.h"
#include "client.h"
#include "nemesis.h"
#include "poll_timeout.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_LIMIT_MS 30000

/* ---------------------------------------------------------------------------------- the masters */

/* Finds libfaketime where Debian installs it, on any architecture. */
static int find_fake_library(struct stage *stage) {
    glob_t found;

    if (glob("/usr/lib/*/faketime/libfaketime.so.1", 0, NULL, &found) != 0) {
        fputs("redlock-chaos: the nemesis \"clocks\" needs libfaketime (package faketime)\n",
              stderr);
        return -1;
    }
    snprintf(stage->fake_library, sizeof(stage->fake_library), "%s", found.gl_pathv[0]);
    globfree(&found);
    return 0;
}

static void clock_path(const struct stage *stage, size_t master, char path[FOLDER_SIZE + 32]) {
    snprintf(path, FOLDER_SIZE + 32, "%s/clock-%zu", stage->folder, master);
}

void stage_set_clock(struct stage *stage, uint32_t master, double offset_s) {
    char path[FOLDER_SIZE + 32];
    char fresh[FOLDER_SIZE + 40];
    FILE *file;

    clock_path(stage, master, path);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    file = fopen(fresh, "we");
    if (file == NULL || fprintf(file, "%+.3f\n", offset_s) < 0 || fclose(file) != 0 ||
        rename(fresh, path) != 0) {
        perror(fresh);
        exit(EXIT_FAILURE);
    }
    stage->clock_offsets_s[master] = offset_s;
}

/*
 * Preloads libfaketime into a server. The server's own allocator reads the time during its start,
 * when libfaketime cannot answer yet, so libc's allocator, named before libfaketime, replaces it.
 */
static int fake_clock(const struct stage *stage, size_t master) {
    char path[FOLDER_SIZE + 32];
    char preload[160];

    clock_path(stage, master, path);
    snprintf(preload, sizeof(preload), "%s:libc.so.6", stage->fake_library);
    return setenv("LD_PRELOAD", preload, 1) == 0 &&
                   setenv("FAKETIME_TIMESTAMP_FILE", path, 1) == 0 &&
                   setenv("FAKETIME_NO_CACHE", "1", 1) == 0 &&
                   setenv("DONT_FAKE_MONOTONIC", "1", 1) == 0 &&
                   setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1) == 0
               ? 0
               : -1;
}

static int prepare_master(size_t index, void *arg) {
    const struct stage *stage = arg;
    char path[FOLDER_SIZE + 32];

    snprintf(path, sizeof(path), "%s/master-%zu.actions", stage->folder, index);
    if ((stage->options->hosts && hosts_enter(&stage->hosts, index) != 0) ||
        setenv(OBSERVER_LOG, path, 1) != 0) {
        return -1;
    }
    return stage->fake_library[0] != '\0' ? fake_clock(stage, index) : 0;
}

static int start_masters(struct stage *stage) {
    static char keys[16];
    static const char *const observed[] = {"--protected-mode", "no", "--loadmodule",
                                           OBSERVER_PATH,      keys, NULL};
    static const char *const plain[] = {"--protected-mode", "no", NULL};
    const char *const *arguments = stage->options->actions != NULL ? observed : plain;
    struct masters_options options = {
        .arguments = arguments,
        .persistent = true,
        .prepare = prepare_master,
        .prepare_arg = stage,
    };

    snprintf(keys, sizeof(keys), "%u", stage->options->keys);
    if ((stage->options->nemeses & NEMESIS_BIT(CLOCKS)) != 0) {
        if (find_fake_library(stage) != 0) {
            return -1;
        }
        for (uint32_t i = 0; i < MASTERS; i++) {
            stage_set_clock(stage, i, 0);
        }
    }
    if (stage->options->hosts) {
        for (size_t i = 0; i < MASTERS; i++) {
            stage->host_names[i] = stage->hosts.addresses[i];
        }
        options.hosts = stage->host_names;
    }
    stage->masters = masters_start_with(MASTERS, &options);
    return stage->masters != NULL ? 0 : -1;
}

static int start_proxy(struct stage *stage) {
    int ports[MASTERS];

    for (size_t i = 0; i < MASTERS; i++) {
        ports[i] = masters_port(stage->masters, i);
    }
    return fault_proxy_start(&stage->proxy, stage->options->clients, ports);
}

/* ---------------------------------------------------------------------------------- the clients */

static _Noreturn void become_client(struct stage *stage, uint32_t index, pid_t parent) {
    const char *uris[MASTERS];
    const struct client_role role = {
        .options = stage->options,
        .board = stage->board,
        .uris = uris,
        .index = index,
        .life = stage->clients[index].life,
        .log = stage->clients[index].log,
        .actions = stage->clients[index].actions,
    };

    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < MASTERS; i++) {
        uris[i] = stage->options->hosts ? masters_uri(stage->masters, i)
                                        : stage->proxy.uris[index * MASTERS + i];
    }
    if (stage->options->hosts) {
        if (hosts_enter(&stage->hosts, MASTERS + index) != 0) {
            perror("redlock-chaos: cannot enter a namespace");
            _exit(EXIT_FAILURE);
        }
    } else {
        close(stage->proxy.orders);
    }
    exit(client_run(&role));
}

int stage_start_client(struct stage *stage, uint32_t client) {
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        become_client(stage, client, parent);
    }
    if (pid < 0) {
        perror("redlock-chaos: fork");
        return -1;
    }
    stage->clients[client].pid = pid;
    stage->clients[client].life++;
    return 0;
}

static void wait_for(pid_t pid, int *status) {
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
}

void stage_kill_client(struct stage *stage, uint32_t client) {
    kill(stage->clients[client].pid, SIGKILL);
    wait_for(stage->clients[client].pid, NULL);
    stage->clients[client].pid = 0;
}

static int open_log(const struct stage *stage, const char *name, uint32_t number,
                    const char *kind) {
    char path[FOLDER_SIZE + 32];

    snprintf(path, sizeof(path), "%s/%s-%u.%s", stage->folder, name, number, kind);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) {
        perror(path);
    }
    return log;
}

void stage_sample_clock(const struct stage *stage) {
    uint64_t before_ns, unix_ns, after_ns;
    char text[32];

    if (stage->clock_log < 0) {
        return;
    }
    do { /* without a pause between the readings */
        before_ns = boottime_ns();
        unix_ns = clock_ns(CLOCK_REALTIME);
        after_ns = boottime_ns();
    } while (after_ns - before_ns > 20000);
    int length = snprintf(text, sizeof(text), "%llu", (unsigned long long)unix_ns);
    if (frame_write(stage->clock_log, before_ns + (after_ns - before_ns) / 2, FRAME_CLOCK, text,
                    (size_t)length) != 0) {
        perror("redlock-chaos: cannot write the log of the clock");
        exit(EXIT_FAILURE);
    }
}

static int start_clients(struct stage *stage) {
    for (uint32_t i = 0; i < stage->options->clients; i++) {
        struct stage_client *client = &stage->clients[i];

        client->log = open_log(stage, "client", i, "log");
        client->actions =
            stage->options->actions != NULL ? open_log(stage, "client", i, "actions") : -1;
        if (client->log < 0 || (client->actions < 0 && stage->options->actions != NULL)) {
            return -1;
        }
        if (stage_start_client(stage, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static bool ended_well(const char *what, uint32_t index, int status) {
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "redlock-chaos: %s %u ended by signal %d\n", what, index, WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0) {
        fprintf(stderr, "redlock-chaos: %s %u ended with %d\n", what, index, WEXITSTATUS(status));
    } else {
        return true;
    }
    return false;
}

bool stage_is_alive(struct stage *stage) {
    int status;

    for (uint32_t i = 0; i < stage->options->clients; i++) {
        pid_t pid = stage->clients[i].pid;

        if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
            stage->clients[i].pid = 0;
            if (ended_well("client", i, status)) {
                fprintf(stderr, "redlock-chaos: client %u ended unasked\n", i);
            }
            return false;
        }
    }
    if (stage->proxy.pid > 0 && waitpid(stage->proxy.pid, &status, WNOHANG) == stage->proxy.pid) {
        stage->proxy.pid = 0;
        fputs("redlock-chaos: the proxy ended\n", stderr);
        return false;
    }
    return true;
}

static int end_client(struct stage *stage, uint32_t client, struct poll_timeout *timeout) {
    pid_t pid = stage->clients[client].pid;
    int status = 0;

    if (pid <= 0) {
        return 0;
    }
    while (waitpid(pid, &status, WNOHANG) != pid) {
        if (!poll_timeout_wait(timeout, END_LIMIT_MS)) {
            fprintf(stderr, "redlock-chaos: client %u does not end\n", client);
            stage_kill_client(stage, client);
            return -1;
        }
    }
    stage->clients[client].pid = 0;
    return ended_well("client", client, status) ? 0 : -1;
}

int stage_end_clients(struct stage *stage) {
    struct poll_timeout timeout = {0};
    int outcome = 0;

    for (uint32_t i = 0; i < stage->options->clients; i++) {
        if (stage->clients[i].pid > 0) {
            kill(stage->clients[i].pid, SIGTERM);
        }
    }
    for (uint32_t i = 0; i < stage->options->clients; i++) {
        if (end_client(stage, i, &timeout) != 0) {
            outcome = -1;
        }
    }
    return outcome;
}

/* ------------------------------------------------------------------------- start and finish */

int stage_start(struct stage *stage, const struct options *options) {
    *stage = (struct stage){.options = options, .owner = getpid(), .clock_log = -1};
    stage->board = mmap(NULL, sizeof(*stage->board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage->board == MAP_FAILED) {
        perror("redlock-chaos: mmap");
        return -1;
    }
    if (folder_make(stage->folder, "chaos") != 0 ||
        (options->hosts && hosts_start(&stage->hosts, MASTERS + options->clients) != 0) ||
        start_masters(stage) != 0 || (!options->hosts && start_proxy(stage) != 0)) {
        return -1;
    }
    if (options->actions != NULL &&
        (stage->clock_log = open_log(stage, "clock", 0, "actions")) < 0) {
        return -1;
    }
    stage_sample_clock(stage);
    return start_clients(stage);
}

void stage_finish(struct stage *stage) {
    if (stage->owner != getpid()) {
        return;
    }
    stage->owner = 0;
    for (uint32_t i = 0; i < stage->options->clients; i++) {
        if (stage->clients[i].pid > 0) {
            stage_kill_client(stage, i);
        }
    }
    if (stage->proxy.pid > 0) {
        kill(stage->proxy.pid, SIGKILL);
        wait_for(stage->proxy.pid, NULL);
    }
    masters_finish(stage->masters);
    if (stage->folder[0] != '\0' && stage->options->keep) {
        fprintf(stderr, "redlock-chaos: the logs are in %s\n", stage->folder);
    } else if (stage->folder[0] != '\0' && folder_remove(stage->folder) != 0) {
        fprintf(stderr, "redlock-chaos: cannot remove %s\n", stage->folder);
    }
}
