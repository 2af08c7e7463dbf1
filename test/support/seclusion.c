#include "seclusion.h"

#include "harness.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PROGRAM_MAX 64

/* Those of the C library and the sanitizers, too. */
static const uint32_t allowed[] = {
    SYS_brk,          SYS_mmap,  SYS_munmap,        SYS_mremap,      SYS_mprotect,
    SYS_madvise,      SYS_futex, SYS_clock_gettime, SYS_getpid,      SYS_gettid,
    SYS_rt_sigreturn, SYS_exit,  SYS_exit_group,    SYS_sigaltstack,
};

/* A filter as the kernel reads it: instructions that jump forward. */
struct program {
    unsigned short length;
    struct sock_filter instructions[PROGRAM_MAX];
};

static void add(struct program *program, struct sock_filter instruction) {
    program->instructions[program->length++] = instruction;
}

static void load(struct program *program, size_t offset) {
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Continues if the loaded number is `value`; otherwise skips `count` instructions. */
static void skip_unless(struct program *program, uint32_t value, uint8_t count) {
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
}

static void end_with(struct program *program, uint32_t verdict) {
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void allow(struct program *program, uint32_t call) {
    skip_unless(program, call, 1);
    end_with(program, SECCOMP_RET_ALLOW);
}

/* The low half of the first argument: the tests run on little-endian machines. */
static void allow_on_stderr(struct program *program, uint32_t call) {
    skip_unless(program, call, 4);
    load(program, offsetof(struct seccomp_data, args[0]));
    skip_unless(program, STDERR_FILENO, 1);
    end_with(program, SECCOMP_RET_ALLOW);
    end_with(program, SECCOMP_RET_TRAP);
}

static void on_other_call(int number, siginfo_t *info, void *context) {
    char text[64];
    int length = snprintf(text, sizeof(text), "secluded, but called %d\n", info->si_syscall);
    (void)number;
    (void)context;

    (void)!write(STDERR_FILENO, text, (size_t)length);
    _exit(SECLUSION_BROKEN);
}

bool seclude(bool may_close) {
    if (under_valgrind()) {
        return true;
    }
    struct sigaction action = {.sa_sigaction = on_other_call, .sa_flags = SA_SIGINFO};
    struct program program = {.length = 0};

    load(&program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT(allowed); i++) {
        allow(&program, allowed[i]);
    }
    if (may_close) {
        allow(&program, SYS_close);
    }
    allow_on_stderr(&program, SYS_write);
    end_with(&program, SECCOMP_RET_TRAP);
    const struct sock_fprog filter = {.len = program.length, .filter = program.instructions};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
