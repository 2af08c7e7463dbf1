/*
 * Process groups and sessions do not hold a family together: setsid() leaves both. The chain of
 * parents does, because a subreaper becomes the parent of its orphaned descendants.
 *
 * The kernel lists the children of each thread, and a walk follows these lists from this process
 * on. Each process is signalled before its list is read: SIGKILL keeps it from forking, so that the
 * list is complete. A chain of processes, each of which forks and ends, is followed to its end,
 * because a step of the walk takes less time than a fork. A process that a walk misses, because its
 * parent ends at that instant, becomes a child of this process, where the next walk begins.
 *
 * On a kernel without these lists (CONFIG_PROC_CHILDREN), the parents of all processes of the
 * machine are read. That takes longer, and such a chain may escape for a while.
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
/* Bounds on a walk: a command that does not get SIGKILL may fork without end. */
#define STEPS_FIRST 64
#define STEPS_MOST 1048576

struct member {
    pid_t pid;
    pid_t parent;
    bool is_ours; /* census: whether it descends from this process */
};

/* Always open, because descriptors may run out. A walk needs two more. */
static DIR *processes;
static int own_list = -1; /* list of this process's children; -1: no such lists */
static int spares[2] = {-1, -1};

/* Children that are signalled even if /proc does not list them. */
static pid_t children[2];

/* Whether a process could not be signalled because it had changed its user. */
static bool was_refused;

struct census {
    struct member *members;
    size_t count;
    size_t capacity;
};

static void keep_spares(void) {
    for (size_t i = 0; i < 2; i++) {
        spares[i] = fcntl(dirfd(processes), F_DUPFD_CLOEXEC, 0);
    }
}

static void close_file(int *file) {
    if (*file >= 0) {
        close(*file);
        *file = -1;
    }
}

static void use_spares(void) {
    close_file(&spares[0]);
    close_file(&spares[1]);
}

/*
 * Returns the parent of a process; 0 if the process has ended. A process whose first thread has
 * ended looks the same, but has other threads.
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
    /* The name of a process is in parentheses, and may contain parentheses. */
    const char *rest = strrchr(line, ')');
    if (rest == NULL || sscanf(rest,
                               ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                               "%*s %d",
                               &state, &parent, &threads) != 3) {
        return 0;
    }
    return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : parent;
}

int family_adopt(void) {
    char list[64];

    if (processes != NULL) {
        closedir(processes); /* the parent's: its position in the folder must not be shared */
        close_file(&own_list);
        use_spares();
    }
    memset(children, 0, sizeof(children));
    processes = opendir("/proc");
    if (processes == NULL) {
        return -1;
    }
    snprintf(list, sizeof(list), "self/task/%ld/children", (long)getpid());
    own_list = openat(dirfd(processes), list, O_RDONLY | O_CLOEXEC);
    errno = 0;
    if (parent_of("self") == 0 && getppid() != 0) {
        errno = errno == 0 ? EACCES : errno;
        return -1;
    }
    keep_spares();
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void family_record(pid_t child) {
    size_t position = children[0] == 0 ? 0 : 1;

    children[position] = child;
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
    rewinddir(processes);
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        pid_t parent = pid > 0 ? parent_of(entry->d_name) : 0;

        if (parent > 0) {
            add(census, pid, parent);
        }
    }
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

/* Returns whether a recorded child still has its number, which may be another process's by now. */
static bool is_child(pid_t child) {
    siginfo_t info;

    return child > 0 && waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Signals a child and its group. */
static void signal_child(pid_t child, int signal_number) {
    if (is_child(child)) {
        kill(child, signal_number);
        if (getpgid(child) == child) {
            kill(-child, signal_number);
        }
    }
}

/* Reads all processes of the machine, then signals the descendants among them. */
static void signal_census(int signal_number) {
    struct census census = {0};

    take_census(&census);
    mark(&census);
    for (size_t i = 0; i < census.count; i++) {
        if (census.members[i].is_ours) {
            send_signal(census.members[i].pid, signal_number);
        }
    }
    free(census.members);
}

/* Adds the processes of a list of the kernel: numbers, each followed by a space. */
static void add_list(struct census *census, int list, pid_t parent) {
    char text[4096];
    off_t position = 0;
    pid_t pid = 0;

    for (ssize_t length; (length = pread(list, text, sizeof(text), position)) > 0;
         position += length) {
        for (ssize_t i = 0; i < length; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = 10 * pid + (text[i] - '0');
            } else {
                add(census, pid, parent);
                pid = 0;
            }
        }
    }
}

/* Opens a file below the folder of a process or thread. Returns -1 on failure. */
static int open_below(int folder, const char *name, const char *rest, int flags) {
    char path[64];

    snprintf(path, sizeof(path), "%.20s/%s", name, rest);
    return openat(folder, path, O_RDONLY | O_CLOEXEC | flags);
}

/* Adds the children of all threads of a process. */
static void add_children(struct census *census, pid_t parent) {
    char name[24];
    int folder;
    DIR *threads;

    snprintf(name, sizeof(name), "%ld", (long)parent);
    folder = open_below(dirfd(processes), name, "task", O_DIRECTORY);
    threads = folder < 0 ? NULL : fdopendir(folder);
    if (threads == NULL) {
        close_file(&folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        int list = entry->d_name[0] == '.' ? -1 : open_below(folder, entry->d_name, "children", 0);

        if (list >= 0) {
            add_list(census, list, parent);
            close(list);
        }
    }
    closedir(threads);
}

/* Returns whether a process of a list is still alive, and its number is still its own. */
static bool is_alive(const struct member *member) {
    siginfo_t info = {0};
    char name[24];
    pid_t parent;

    if (member->parent == getpid()) {
        int flags = WEXITED | WNOHANG | WNOWAIT;

        return waitid(P_PID, (id_t)member->pid, &info, flags) == 0 && info.si_pid == 0;
    }
    snprintf(name, sizeof(name), "%ld", (long)member->pid);
    parent = parent_of(name);
    return parent > 0 && (parent == member->parent || parent == getpid());
}

/* Walks down from the processes of a pile, the youngest first: the most likely to fork next. */
static void signal_pile(struct census *pile, int signal_number, size_t steps_most) {
    for (size_t steps = 0; pile->count > 0 && steps < steps_most; steps++) {
        struct member member = pile->members[--pile->count];

        if (is_alive(&member)) {
            send_signal(member.pid, signal_number);
            add_children(pile, member.pid);
        }
    }
    free(pile->members);
}

static void signal_lists(int signal_number, size_t steps_most) {
    struct census pile = {0};

    add_list(&pile, own_list, getpid());
    signal_pile(&pile, signal_number, steps_most);
}

/* Signals all descendants; by the lists at most `steps_most`. */
static void signal_all(int signal_number, size_t steps_most) {
    use_spares();
    signal_child(children[0], signal_number);
    signal_child(children[1], signal_number);
    if (own_list >= 0) {
        signal_lists(signal_number, steps_most);
    } else {
        signal_census(signal_number);
    }
    keep_spares();
}

/*
 * Kills the youngest descendants of the first recorded child while that child is stopped. If it was
 * killed first, it would take the core from this walk in order to end, and to end its thousands of
 * zombies, while the processes to catch fork on.
 */
static void kill_below_first(void) {
    struct census pile = {0};

    if (own_list >= 0 && is_child(children[0]) && kill(children[0], SIGSTOP) == 0) {
        use_spares();
        add_children(&pile, children[0]);
        signal_pile(&pile, SIGKILL, STEPS_FIRST);
        keep_spares();
    }
}

void family_signal(int signal_number) {
    signal_all(signal_number, STEPS_MOST);
}

/*
 * A stopped keeper has thousands of zombies until it dies. The first walks therefore reach only the
 * youngest processes.
 */
bool family_end(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    size_t steps_most = STEPS_FIRST;

    signal(SIGCHLD, SIG_IGN); /* zombies vanish when they become children of this process */
    kill_below_first();
    for (;;) {
        pid_t ended;

        signal_all(SIGKILL, steps_most);
        do {
            ended = waitpid(-1, NULL, WNOHANG);
        } while (ended > 0 || (ended < 0 && errno == EINTR));
        if (ended < 0) {
            return !was_refused; /* nobody is left */
        }
        nanosleep(&pause, NULL);
        steps_most = steps_most < STEPS_MOST ? 2 * steps_most : STEPS_MOST;
    }
}
