#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ARGUMENTS_MOST 32

uint64_t rig_wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void rig_wait_a_moment(struct poll_timeout *timeout, const char *condition) {
    if (!poll_timeout_wait(timeout, RIG_LIMIT_MS)) {
        fail_msg("within a minute it did not become true: %s", condition);
    }
}

/* --------------------------------------------------------------------------- set up, tear down */

static void set_nodes(const struct masters *masters) {
    char list[RIG_MASTERS * 96] = "";
    size_t length = 0;

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s?durable=yes",
                                   i == 0 ? "" : ",", masters_uri(masters, i));
    }
    setenv("REDLOCK_NODES", list, 1);
}

/* Commands inherit which signals are ignored or blocked, even from the caller of the tests. */
static void receive_all_signals(void) {
    sigset_t none;

    for (int number = 1; number < SIGRTMIN; number++) {
        signal(number, SIG_DFL); /* refused for SIGKILL and SIGSTOP */
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int rig_set_up(void **state) {
    struct rig *rig = calloc(1, sizeof(*rig));
    char alive_path[RIG_PATH];

    assert_non_null(rig);
    receive_all_signals();
    assert_int_equal(folder_make(rig->folder, "command"), 0);
    rig->masters = masters_start(RIG_MASTERS, NULL);
    assert_non_null(rig->masters);
    set_nodes(rig->masters);
    snprintf(rig->output_path, sizeof(rig->output_path), "%s/output", rig->folder);
    snprintf(alive_path, sizeof(alive_path), "%s/alive", rig->folder);
    assert_int_equal(mkfifo(alive_path, 0600), 0);
    rig->alive = open(alive_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(rig->alive >= 0);
    setenv("ALIVE", alive_path, 1);
    setenv("FOLDER", rig->folder, 1);
    setenv("REDLOCK", REDLOCK_COMMAND, 1);
    *state = rig;
    return 0;
}

int rig_tear_down(void **state) {
    struct rig *rig = *state;

    if (rig->pid > 0) { /* a test has failed; the command's other process ends with this one */
        kill(rig->pid, SIGKILL);
        waitpid(rig->pid, NULL, 0);
    }
    close(rig->alive);
    masters_finish(rig->masters);
    folder_remove(rig->folder);
    free(rig);
    return 0;
}

/* -------------------------------------------------------------------------------- the processes */

void rig_start_program(struct rig *rig, const char *file, const char *const *argv) {
    pid_t parent = getpid();

    rig->pid = fork();
    assert_true(rig->pid >= 0);
    if (rig->pid == 0) {
        int input = open("/dev/null", O_RDONLY);
        int output = open(rig->output_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(input, STDIN_FILENO) >= 0 &&
            dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) {
            execvp(file, (char *const *)argv);
        }
        _exit(EXIT_FAILURE);
    }
}

void rig_start_with(struct rig *rig, const char *const *argv) {
    rig_start_program(rig, REDLOCK_COMMAND, argv);
}

void rig_start(struct rig *rig, ...) {
    const char *argv[ARGUMENTS_MOST] = {"redlock"};
    size_t count = 1;
    va_list values;

    va_start(values, rig);
    while ((argv[count] = va_arg(values, const char *)) != NULL) {
        count++;
        assert_true(count < ARGUMENTS_MOST);
    }
    va_end(values);
    rig_start_with(rig, argv);
}

int rig_wait(struct rig *rig) {
    int status;

    RIG_WAIT_UNTIL(waitpid(rig->pid, &status, WNOHANG) == rig->pid);
    rig->pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

pid_t rig_child_of(pid_t pid) {
    char path[64];
    int child = 0;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)pid, (long)pid);
    for (struct poll_timeout timeout = {0}; child == 0; rig_wait_a_moment(&timeout, path)) {
        FILE *file = fopen(path, "re");

        if (file != NULL) {
            (void)!fscanf(file, "%d", &child);
            fclose(file);
        }
    }
    return child;
}

/* Waits until the pipe has a message (true), or has no writer any more (false). */
static bool read_alive(const struct rig *rig) {
    struct pollfd polled = {.fd = rig->alive, .events = POLLIN};
    char bytes[64];

    assert_true(poll(&polled, 1, RIG_LIMIT_MS) > 0);
    return read(rig->alive, bytes, sizeof(bytes)) > 0;
}

void rig_wait_for_life(struct rig *rig) {
    char bytes[64];

    /*
     * Without a writer, before the first or after the last one, a read returns the end of the file.
     */
    RIG_WAIT_UNTIL(read(rig->alive, bytes, sizeof(bytes)) > 0);
}

void rig_wait_for_death(struct rig *rig) {
    while (read_alive(rig)) {
    }
}

/* ---------------------------------------------------------------------------------- the output */

char *rig_output(const struct rig *rig) {
    struct stat about;
    int file = open(rig->output_path, O_RDONLY | O_CLOEXEC);
    char *text;
    ssize_t length = 0;

    assert_true(file < 0 || fstat(file, &about) == 0);
    text = calloc(1, file < 0 ? 1 : (size_t)about.st_size + 1);
    assert_non_null(text);
    if (file >= 0) {
        length = read(file, text, (size_t)about.st_size);
        close(file);
    }
    assert_true(length >= 0);
    return text;
}

bool rig_has_said(const struct rig *rig, const char *text) {
    char *output = rig_output(rig);
    bool has = strstr(output, text) != NULL;

    free(output);
    return has;
}

void rig_wait_for_text(const struct rig *rig, const char *text) {
    RIG_WAIT_UNTIL(rig_has_said(rig, text));
}

void rig_assert_events(const struct rig *rig) {
    char *output = rig_output(rig);

    for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "{\"event\":\"", 10) != 0 || line[strlen(line) - 1] != '}') {
            fail_msg("no event: %s", line);
        }
    }
    free(output);
}

uint64_t rig_number(const struct rig *rig, const char *name) {
    char *output = rig_output(rig);
    char label[64];
    uint64_t number = 0;

    snprintf(label, sizeof(label), "\"%s\":", name);
    for (char *found = output; (found = strstr(found, label)) != NULL;) {
        found += strlen(label);
        number = strtoull(found, NULL, 10);
    }
    free(output);
    return number;
}
