/*
 * A simulated application: a process with a client and some workers. Each worker acquires, extends,
 * cancels and releases locks at random, from timers and inside callbacks. The application checks
 * the library's contract: one callback for each accepted request, never before its call has
 * returned, none after the client has ended, and only the statuses that fit.
 */
#ifndef REDLOCK_SIM_APP_H
#define REDLOCK_SIM_APP_H

#include "check.h"
#include "plan.h"
#include "process.h"

#include <redlock.h>
#include <stdbool.h>

/* The record of an accepted request, from its call to its callback; or of a lock's on_lost. */
struct record {
    STAILQ_ENTRY(record) link;
    struct app *app;
    struct worker *worker;
    unsigned life; /* number of the client's life */
    bool is_open;  /* whether its callback is pending */
    bool was_canceled;
    uint64_t asked_at;
    uint64_t began_at; /* instant of the call, in true time */
    uint64_t min_validity;
    bool is_ample;    /* whether the request leaves validity after two of the longest round trips */
    struct look look; /* the pending question, if any */
};
STAILQ_HEAD(record_list, record);

struct worker {
    struct app *app;
    unsigned index;
    struct alarm alarm; /* fires at the worker's next action */
    struct alarm looks; /* fires at the worker's next question */
    unsigned keys[KEYS_MAX];
    unsigned key_count;
    uint64_t min_hold_ms;
    redlock_mode mode;
    redlock_lock *lock;      /* being acquired, or held */
    struct record *acquires; /* NULL: no acquisition is pending */
    struct record *extends;  /* NULL: no extension is pending */
    struct record *losses;   /* record of the lock's on_lost */
    uint32_t claimed;        /* mask of the keys that it wants; 0: none */
    bool is_watched;         /* whether a watchdog renews the lock until its release */
    bool was_canceled;       /* whether the latest request was canceled */
    bool is_held;
    /* whether the handle must be released: the lock is held, or was closed by the client */
    bool is_releasable;
    struct hold hold;
    unsigned turns;    /* number of locks acquired in the last phase */
    bool has_finished; /* whether its part of the last phase is done */
};

/* A step in the replacement of servers. */
enum app_step { STEP_CHANGE, STEP_COMMIT, STEP_ABANDON };

/* Masks of servers: the client's nodes, and its next nodes; 0: none. */
struct app_lists {
    uint32_t now, next;
};

/* The phase of a run. */
enum phase {
    PHASE_FAULTS,  /* faults of any kind */
    PHASE_QUIESCE, /* no new requests; held locks are released */
    PHASE_LAST,    /* no faults; all workers request each key once */
    PHASE_END      /* all clients are closed */
};

struct app {
    struct event_base process;
    const struct plan *plan;
    struct checker *checker;
    enum phase phase;
    char uris[SERVERS_MAX + 1][64]; /* including the URI of the duplicate */
    struct app_lists lists, birth;
    enum app_step step; /* next step to take */
    uint32_t step_list;
    struct occurrence stepping;

    redlock_client *client;
    bool is_starting; /* whether its client is being made */
    uint64_t born_at; /* instant at which the client was made */
    bool is_closing;
    bool is_calling; /* whether inside a call of the library, where no callback may run */
    struct alarm rebirth;
    struct task awake; /* runs after a pause, before the process's loop */
    struct alarm questions;
    unsigned questions_out; /* number of unanswered questions */
    struct worker workers[WORKERS_MAX];
    struct record_list records;
};

void app_init(struct app *app, const struct plan *plan, struct checker *checker, unsigned index);

/* Sets the lists of the clients that the application creates from now on. */
void app_is_born_with(struct app *app, uint32_t list, uint32_t next);

/* Makes the client take a step, soon; STEP_CHANGE changes to `list`. */
void app_take_step(struct app *app, enum app_step step, uint32_t list);
void app_forget_step(struct app *app);

/*
 * Return whether the application has a client, or is about to create one; whether that client is,
 * or will be, joint.
 */
bool app_has_client(const struct app *app);
bool app_is_joint(const struct app *app);

/* Kills the application, in any state. */
void app_finish(struct app *app);

/* Kills the application, and restarts it at `again_at`. */
void app_crash(struct app *app, uint64_t again_at);

/* Pauses the process until `until`. */
void app_pause(struct app *app, uint64_t until);

void app_enter(struct app *app, enum phase phase);

/* Returns, in PHASE_LAST, whether all workers have had their locks. */
bool app_has_finished(const struct app *app);

/*
 * Checks, at the end of PHASE_QUIESCE, that no request waits for a node, and that no node has a
 * pending release.
 */
void app_check_idle(struct app *app);

/* Checks, at the end of PHASE_END, that all clients and requests have ended. */
void app_check_end(struct app *app);

#endif
