#define _GNU_SOURCE 1 /* MAP_ANONYMOUS */

#include "board.h"

#include "clock.h"
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static bool is_measured(const struct board *board, uint64_t now_ns) {
    return now_ns >= board->from_ns && now_ns < board->to_ns;
}

struct board *board_create(const struct board_shape *shape) {
    size_t processes_size = shape->processes * sizeof(struct board_process);
    size_t keys_size = shape->keys * sizeof(struct board_key);
    size_t size = sizeof(struct board) + processes_size + keys_size +
                  shape->contenders * sizeof(struct board_contender);
    struct board *board =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED) {
        memory_end();
    }
    /* Fresh memory from the kernel: all counts are 0. */
    board->shape = *shape;
    board->size = size;
    board->processes = (struct board_process *)(board + 1);
    board->keys = (struct board_key *)(board->processes + shape->processes);
    board->contenders = (struct board_contender *)(board->keys + shape->keys);
    for (size_t i = 0; i < shape->keys; i++) {
        load_format_key(board->keys[i].name, i);
    }
    return board;
}

void board_destroy(struct board *board) {
    if (board != NULL) {
        munmap(board, board->size);
    }
}

void board_schedule(struct board *board, uint64_t from_ns, uint64_t to_ns) {
    board->from_ns = from_ns; /* first: the processes read both concurrently */
    board->to_ns = to_ns;
}

void board_open(struct board *board) {
    for (size_t i = 0; i < board->shape.keys; i++) {
        board->keys[i].free_from_ns = clock_now_ns();
    }
}

size_t board_first_contender(const struct board *board, size_t process) {
    return process * board->shape.contenders / board->shape.processes;
}

struct board_key *board_key_of(const struct board *board, size_t contender) {
    return &board->keys[contender % board->shape.keys];
}

void board_wait(struct board *board, size_t contender) {
    board->contenders[contender].waiting_from_ns = clock_now_ns();
}

static void record_handoff(struct board_process *process, uint64_t took_ns) {
    histogram_record(&process->handoff, took_ns);
    process->stall_ns = most(process->stall_ns, took_ns);
}

void board_enter(struct board *board, size_t process, size_t contender) {
    uint64_t now_ns = clock_now_ns();
    struct board_key *key = board_key_of(board, contender);
    struct board_contender *own = &board->contenders[contender];
    struct board_process *counts = &board->processes[process];
    bool is_alone = atomic_fetch_add(&key->holders, 1) == 0;
    uint64_t free_from_ns = atomic_exchange(&key->free_from_ns, 0);
    uint64_t waiting_from_ns = atomic_exchange(&own->waiting_from_ns, 0);

    counts->acquired++;
    if (!is_alone) {
        board_fail(board, "two contenders hold a key at a time");
    }
    if (is_measured(board, now_ns)) {
        own->served++;
        histogram_record(&counts->wait, now_ns - waiting_from_ns);
        if (is_alone && free_from_ns != 0) {
            record_handoff(counts, now_ns - free_from_ns);
        }
    }
}

void board_leave(struct board *board, size_t contender) {
    struct board_key *key = board_key_of(board, contender);

    key->free_from_ns = clock_now_ns();
    atomic_fetch_sub(&key->holders, 1);
}

void board_record_release(struct board *board, size_t process, uint64_t took_ns) {
    if (is_measured(board, clock_now_ns())) {
        histogram_record(&board->processes[process].release, took_ns);
    }
}

void board_fail(struct board *board, const char *error) {
    board->errors++;
    if (!atomic_exchange(&board->has_first_error, true)) {
        snprintf(board->first_error, sizeof(board->first_error), "%s", error);
    }
}

uint64_t board_acquired(const struct board *board) {
    uint64_t acquired = 0;

    for (size_t i = 0; i < board->shape.processes; i++) {
        acquired += board->processes[i].acquired;
    }
    return acquired;
}

/* Returns the time from `from_ns` to the end of the stretch; 0 if `from_ns` is 0. */
static uint64_t until_end(const struct board *board, uint64_t from_ns) {
    return from_ns != 0 && from_ns < board->to_ns ? board->to_ns - from_ns : 0;
}

void board_cut_off(const struct board *board, struct board_totals *totals) {
    for (size_t i = 0; i < board->shape.keys; i++) {
        totals->stall_ns = most(totals->stall_ns, until_end(board, board->keys[i].free_from_ns));
    }
    for (size_t i = 0; i < board->shape.contenders; i++) {
        totals->wait_max_ns =
            most(totals->wait_max_ns, until_end(board, board->contenders[i].waiting_from_ns));
    }
}

void board_add_up(const struct board *board, struct board_totals *totals) {
    totals->served_least = UINT64_MAX;
    for (size_t i = 0; i < board->shape.contenders; i++) {
        uint64_t served = board->contenders[i].served;

        totals->served += served;
        totals->served_most = most(totals->served_most, served);
        totals->served_least = served < totals->served_least ? served : totals->served_least;
    }
    for (size_t i = 0; i < board->shape.processes; i++) {
        const struct board_process *process = &board->processes[i];

        histogram_add(&totals->wait, &process->wait);
        histogram_add(&totals->handoff, &process->handoff);
        histogram_add(&totals->release, &process->release);
        totals->stall_ns = most(totals->stall_ns, process->stall_ns);
    }
    totals->wait_max_ns = most(totals->wait_max_ns, totals->wait.max);
}
