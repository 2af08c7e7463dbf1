/*
 * The counts of contending processes, in shared memory. It is created before the processes are
 * forked, so that all of them have the board at the same address.
 *
 * A contender enters a key when it gets the lock, and leaves it right before the call that releases
 * it: so two contenders in one key at the same time are two holders. Each contender either waits
 * for its key or holds it: so somebody waits for a key that nobody is in.
 */
#ifndef BENCH_BOARD_H
#define BENCH_BOARD_H

#include "histogram.h"
#include "load.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct board_shape {
    size_t contenders; /* spread evenly over the processes and the keys */
    size_t processes;
    size_t keys;
};

struct board_key {
    char name[LOAD_KEY_SIZE];
    atomic_size_t holders;         /* number of contenders in the key; never above 1 */
    _Atomic uint64_t free_from_ns; /* instant at which the last holder left; 0: held */
};

struct board_contender {
    _Atomic uint64_t served;          /* acquisitions within the measured stretch */
    _Atomic uint64_t waiting_from_ns; /* 0: not waiting */
};

/* The numbers of one process, within the measured stretch unless stated otherwise. */
struct board_process {
    _Atomic uint64_t acquired; /* acquisitions since the start */
    uint64_t stall_ns;         /* longest time for which a key was free before it was entered */
    struct histogram wait;     /* ns from the request to its callback */
    struct histogram handoff;  /* ns from a release to the callback of the next holder */
    struct histogram release;  /* ns from a release to its own callback */
};

struct board {
    struct board_shape shape;
    size_t size;              /* size of the shared memory */
    _Atomic uint64_t from_ns; /* the measured stretch */
    _Atomic uint64_t to_ns;   /* 0: not scheduled yet */
    double round_trip_us;     /* measured by the first process, before the contest */
    atomic_size_t ready;      /* number of processes whose nodes are connected */
    _Atomic uint64_t errors;
    atomic_bool has_first_error;
    char first_error[512];
    struct board_key *keys;
    struct board_contender *contenders;
    struct board_process *processes;
};

/* The numbers of all processes. */
struct board_totals {
    uint64_t served;
    uint64_t served_least; /* acquisitions of the contender that was served least */
    uint64_t served_most;
    uint64_t wait_max_ns; /* includes waits in progress at the end of the stretch */
    uint64_t stall_ns;    /* includes keys that are free at the end */
    struct histogram wait;
    struct histogram handoff;
    struct histogram release;
};

struct board *board_create(const struct board_shape *shape);
void board_destroy(struct board *board); /* NULL is allowed */

/* Records that from now on there are waiters for all keys. */
void board_open(struct board *board);

/* Sets the measured stretch, which is in the future. */
void board_schedule(struct board *board, uint64_t from_ns, uint64_t to_ns);

/* Returns the first contender of a process; for the process after the last, the end. */
size_t board_first_contender(const struct board *board, size_t process);

struct board_key *board_key_of(const struct board *board, size_t contender);

/* Records that a contender begins to wait. */
void board_wait(struct board *board, size_t contender);

/*
 * Records that a contender of the process holds its key. Counts an error if another contender also
 * holds it.
 */
void board_enter(struct board *board, size_t process, size_t contender);

/* Records that a contender no longer holds its key. */
void board_leave(struct board *board, size_t contender);

/* Records the duration of a release by the process. */
void board_record_release(struct board *board, size_t process, uint64_t took_ns);

/* Counts an error and keeps the text of the first one. */
void board_fail(struct board *board, const char *error);

/* Returns the number of acquisitions of all processes since the start. */
uint64_t board_acquired(const struct board *board);

/*
 * Adds what the end of the stretch cuts off: waits, and times for which keys have been free. Call
 * it when the stretch is over and the processes still contend.
 */
void board_cut_off(const struct board *board, struct board_totals *totals);

/* Adds the numbers of all processes. Call it when the processes have ended. */
void board_add_up(const struct board *board, struct board_totals *totals);

#endif
