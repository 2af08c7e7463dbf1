/*
 * A simulated application: a process with a client and some workers, each of which acquires,
 * extends, cancels and releases locks as chance will have it, from timers and from inside
 * callbacks. It holds the library to its contract: one callback for each accepted request, never
 * before its call has returned, none after the client has ended, and only the statuses that fit.
 */
#ifndef REDLOCK_SIM_APP_H
#define REDLOCK_SIM_APP_H

#include "check.h"
#include "plan.h"
#include "process.h"

#include <redlock.h>
#include <stdbool.h>

#define WORKERS_MAX 4

/* One accepted request, from its call to its callback; or a lock's on_lost. */
struct record {
    STAILQ_ENTRY(record) link;
    struct app *app;
    struct worker *worker;
    unsigned life; /* of the client */
    bool is_open;  /* its callback is to come */
    bool was_canceled;
    uint64_t asked_at;
    uint64_t began_at; /* the same in true time */
    uint64_t min_validity;
    struct look look; /* of a question */
};
STAILQ_HEAD(record_list, record);

struct worker {
    struct app *app;
    unsigned index;
    struct alarm alarm; /* what it does next */
    struct alarm looks; /* and its next question */
    unsigned keys[KEYS_MAX];
    unsigned key_count;
    uint64_t min_hold_ms;
    redlock_mode mode;
    redlock_lock *lock;      /* being acquired, or held */
    struct record *acquires; /* NULL: it is not acquiring */
    struct record *extends;  /* NULL: it is not extending */
    struct record *losses;   /* the lock's on_lost */
    bool is_held;
    struct hold hold;
    bool has_finished; /* its part of the last phase is done */
};

/* A step in the replacing of servers. */
enum app_step { STEP_CHANGE, STEP_COMMIT, STEP_ABANDON };

/* Masks of servers: those of its client, and those it is being changed to; 0: none. */
struct app_lists {
    uint32_t now, next;
};

/* What the run is in. */
enum phase {
    PHASE_FAULTS, /* anything goes */
    PHASE_SETTLE, /* nothing new; what is held is released */
    PHASE_LAST,   /* without faults, everybody asks for each key once */
    PHASE_END     /* everything is closed */
};

struct app {
    struct event_base process;
    const struct plan *plan;
    struct checker *checker;
    enum phase phase;
    char uris[SERVERS_MAX + 1][64]; /* and that of the twin */
    struct app_lists lists, birth;
    enum app_step step; /* that it is to take */
    uint32_t step_list;
    struct occurrence stepping;

    redlock_client *client;
    bool is_starting; /* its client is being made */
    bool is_closing;
    bool is_calling; /* inside a call of the library: no callback may come */
    struct alarm rebirth;
    struct task awake; /* after a pause, before its loop runs */
    struct alarm questions;
    unsigned questions_out; /* those of them without an answer yet */
    struct worker workers[WORKERS_MAX];
    struct record_list records;
};

void app_init(struct app *app, const struct plan *plan, struct checker *checker, unsigned index);

/* The lists of the clients that it makes from now on. */
void app_is_born_with(struct app *app, uint32_t list, uint32_t next);

/* Has its client take a step, soon; to `list`, in STEP_CHANGE. */
void app_take_step(struct app *app, enum app_step step, uint32_t list);
void app_forget_step(struct app *app);

/* It has one, or will have it at once; and that is, or will be, joint. */
bool app_has_client(const struct app *app);
bool app_is_joint(const struct app *app);

/* Kills it, in whatever state it is. */
void app_finish(struct app *app);

/* Kills it, and starts it anew after a while. */
void app_crash(struct app *app, uint64_t again_at);

/* Stops it from running for a while. */
void app_pause(struct app *app, uint64_t until);

void app_enter(struct app *app, enum phase phase);

/* In PHASE_LAST: whether all of its workers had their lock. */
bool app_has_finished(const struct app *app);

/* In PHASE_SETTLE, at the end: nothing waits for a node, nothing is owed. */
void app_check_idle(struct app *app);

/* In PHASE_END, at the end: everything has ended. */
void app_check_end(struct app *app);

#endif
