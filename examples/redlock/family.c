/*
 * Process groups and sessions do not hold a family together: setsid() leaves both. The chain of
 * parents does, because a subreaper becomes the parent of its orphaned descendants.
 */
#include "family.h"

#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 1000000

struct member {
    pid_t pid;
    pid_t parent;
    bool is_ours; /* whether it descends from this process */
};

/* Open all the time, because descriptors may run out. */
static DIR *processes;
static int spare = -1;

/* Children that are signalled also when /proc does not tell them. */
static pid_t children[2];

/* Whether a process could not be signalled, because it had become another user. */
static bool was_refused;

struct census {
    struct member *members;
    size_t count;
    size_t capacity;
};

static void keep_spare(void) {
    spare = fcntl(dirfd(processes), F_DUPFD_CLOEXEC, 0);
}

/*
 * Returns the parent of a process; 0 when the process has ended. One whose first thread has ended
 * looks like that too, but has other threads.
 */
static pid_t parent_of(const char *pid) {
    char path[64];
    char line[1024];
    char state;
    int parent = 0;
    int threads = 0;
    ssize_t length = -1;
    int file;

    snprintf(path, sizeof(path), "%.20s/stat", pid);
    file = openat(dirfd(processes), path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, line, sizeof(line) - 1);
        close(file);
    }
    if (length <= 0) {
        return 0;
    }
    line[length] = '\0';
    /* The name of a process stands in parentheses, and may contain some. */
    const char *rest = strrchr(line, ')');
    if (rest == NULL || sscanf(rest,
                               ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                               "%*s %d",
                               &state, &parent, &threads) != 3) {
        return 0;
    }
    return state == 'Z' && threads <= 1 ? 0 : parent;
}

int family_adopt(void) {
    if (processes != NULL) {
        closedir(processes); /* the parent's, whose place in the folder is its own */
        close(spare);
    }
    memset(children, 0, sizeof(children));
    processes = opendir("/proc");
    if (processes == NULL) {
        return -1;
    }
    keep_spare();
    if (parent_of("self") == 0 && getppid() != 0) {
        errno = EACCES;
        return -1;
    }
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void family_note(pid_t child) {
    size_t place = children[0] == 0 ? 0 : 1;

    children[place] = child;
}

static void add(struct census *census, pid_t pid, pid_t parent) {
    if (census->count == census->capacity) {
        size_t capacity = census->capacity == 0 ? 256 : 2 * census->capacity;
        struct member *members = realloc(census->members, capacity * sizeof(*members));

        if (members == NULL) {
            return;
        }
        census->members = members;
        census->capacity = capacity;
    }
    census->members[census->count++] = (struct member){.pid = pid, .parent = parent};
}

static void take_census(struct census *census) {
    close(spare);
    rewinddir(processes);
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        pid_t parent = pid > 0 ? parent_of(entry->d_name) : 0;

        if (parent > 0) {
            add(census, pid, parent);
        }
    }
    keep_spare();
}

static bool is_ours(const struct census *census, pid_t pid) {
    if (pid == getpid()) {
        return true;
    }
    for (size_t i = 0; i < census->count; i++) {
        if (census->members[i].pid == pid) {
            return census->members[i].is_ours;
        }
    }
    return false;
}

/* Marks the descendants: each pass finds at least one more generation. */
static void mark(struct census *census) {
    bool found = true;

    while (found) {
        found = false;
        for (size_t i = 0; i < census->count; i++) {
            struct member *member = &census->members[i];

            if (!member->is_ours && is_ours(census, member->parent)) {
                member->is_ours = found = true;
            }
        }
    }
}

static void send_signal(pid_t pid, int signal_number) {
    if (kill(pid, signal_number) != 0 && errno == EPERM && !was_refused) {
        was_refused = true;
        tool_say("cannot end process %ld: it is another user's", (long)pid);
    }
}

/* Signals a child, and its group, unless the numbers may have become another's. */
static void signal_child(pid_t child, int signal_number) {
    siginfo_t info;

    if (child > 0 && waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        kill(child, signal_number);
        if (getpgid(child) == child) {
            kill(-child, signal_number);
        }
    }
}

size_t family_signal(int signal_number) {
    struct census census = {0};
    size_t count = 0;

    take_census(&census);
    mark(&census);
    signal_child(children[0], signal_number);
    signal_child(children[1], signal_number);
    for (size_t i = 0; i < census.count; i++) {
        if (census.members[i].is_ours) {
            send_signal(census.members[i].pid, signal_number);
            count++;
        }
    }
    free(census.members);
    return count;
}

bool family_end(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    for (;;) {
        pid_t ended;

        family_signal(SIGKILL);
        do {
            ended = waitpid(-1, NULL, WNOHANG);
        } while (ended > 0 || (ended < 0 && errno == EINTR));
        if (ended < 0) {
            return !was_refused; /* nobody is left */
        }
        nanosleep(&pause, NULL);
    }
}
