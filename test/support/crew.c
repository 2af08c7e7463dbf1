#define _GNU_SOURCE 1 /* memfd_create */

#include "crew.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* PROGRAM MEMBER DESCRIPTOR URI... */
#define ARGUMENTS_BEFORE_URIS 3

static const char *program; /* the path of this program */

static void *map(int descriptor, size_t size) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
}

static void destroy(void *object) {
    struct crew *crew = object;

    for (size_t i = 0; i < crew->members; i++) {
        if (crew->pids[i] > 0) {
            crew_kill(crew, i);
        }
    }
    munmap(crew->memory, crew->size);
    close(crew->descriptor);
    free(crew);
}

struct crew *crew_create(struct fixture *f, size_t size) {
    struct crew *crew = calloc(1, sizeof(*crew));

    assert_non_null(crew);
    crew->fixture = f;
    crew->size = size;
    crew->descriptor = memfd_create("crew", 0);
    assert_true(crew->descriptor >= 0);
    assert_int_equal(ftruncate(crew->descriptor, (off_t)size), 0);
    crew->memory = map(crew->descriptor, size);
    assert_ptr_not_equal(crew->memory, MAP_FAILED);
    at_finish(f, destroy, crew);
    return crew;
}

static pid_t start_member(const struct crew *crew, size_t member) {
    const struct masters *masters = crew->fixture->masters;
    char numbers[2][24];
    const char *argv[ARGUMENTS_BEFORE_URIS + REDLOCK_MAX_NODES + 1] = {program, numbers[0],
                                                                       numbers[1]};
    pid_t pid;

    for (size_t i = 0; i < masters_count(masters); i++) {
        argv[ARGUMENTS_BEFORE_URIS + i] = masters_uri(masters, i);
    }
    snprintf(numbers[0], sizeof(numbers[0]), "%zu", member);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", crew->descriptor);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(program, (char *const *)argv);
        _exit(127);
    }
    return pid;
}

void crew_start(struct crew *crew, size_t members) {
    assert_int_in_range(members, 1, CREW_MAX);
    for (; crew->members < members; crew->members++) {
        crew->pids[crew->members] = start_member(crew, crew->members);
    }
}

bool crew_is_at_work(const struct crew *crew) {
    for (size_t i = 0; i < crew->members; i++) {
        siginfo_t info = {.si_pid = 0};

        if (crew->pids[i] == 0) {
            return false;
        }
        assert_int_equal(waitid(P_PID, (id_t)crew->pids[i], &info, WEXITED | WNOHANG | WNOWAIT), 0);
        if (info.si_pid != 0) {
            return false;
        }
    }
    return true;
}

void crew_kill(struct crew *crew, size_t member) {
    assert_true(crew->pids[member] > 0);
    assert_int_equal(kill(crew->pids[member], SIGKILL), 0);
    assert_int_equal(waitpid(crew->pids[member], NULL, 0), crew->pids[member]);
    crew->pids[member] = 0;
}

void crew_wait(struct crew *crew) {
    for (size_t i = 0; i < crew->members; i++) {
        int result;

        if (crew->pids[i] == 0) {
            continue;
        }
        assert_int_equal(waitpid(crew->pids[i], &result, 0), crew->pids[i]);
        crew->pids[i] = 0;
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), EXIT_SUCCESS);
    }
}

bool crew_member(int argc, char **argv, size_t size, crew_work *work, int *result) {
    void *memory;

    program = argv[0];
    if (argc <= ARGUMENTS_BEFORE_URIS) {
        return false;
    }
    memory = map(atoi(argv[2]), size);
    *result = EXIT_FAILURE;
    if (memory != MAP_FAILED) {
        *result = work(strtoul(argv[1], NULL, 10), memory, argv + ARGUMENTS_BEFORE_URIS,
                       (size_t)argc - ARGUMENTS_BEFORE_URIS);
        munmap(memory, size);
    }
    return true;
}
