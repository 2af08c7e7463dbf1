/* Declarations shared by an application and its workers. All other files include app.h. */
#ifndef REDLOCK_SIM_WORKER_H
#define REDLOCK_SIM_WORKER_H

#include "app.h"

static inline struct world *app_world(const struct app *app) {
    return app->process.world;
}

static inline uint64_t app_draw(struct app *app, uint64_t below) {
    return rng_below(&app_world(app)->rng, below);
}

static inline bool app_chance(struct app *app, unsigned per_mille) {
    return rng_chance(&app_world(app)->rng, per_mille);
}

/*
 * Returns whether the process is hurried: it holds locks only briefly, asks the crowd of questions,
 * and is preempted, if the plan has these.
 */
static inline bool app_is_hurried(const struct app *app) {
    return app->plan->has_hurry && app->process.index % 2 == 1;
}

/* Returns the maximum time before the next request: longer for processes that are not hurried. */
static inline uint64_t app_think_ms(const struct app *app) {
    return app->plan->has_hurry && !app_is_hurried(app) ? 2000 : app->plan->think_ms;
}

/* Returns whether the client of a distant world had had the time to connect, without faults. */
static inline bool app_is_connected(const struct app *app, uint64_t at) {
    return app->born_at + 3000 * MS + 6 * plan_round_trip(app->plan) < at;
}

/* Enclose each call of the library, inside which no callback may come. */
static inline void app_begin_call(struct app *app) {
    app->is_calling = true;
}

static inline void app_end_call(struct app *app) {
    app->is_calling = false;
}

void app_close_client(struct app *app);

/*
 * Opens a record for a request that is being made. record_close ends it when the call was refused,
 * or the callback need not come.
 */
struct record *record_expect(struct worker *worker);
void record_close(struct record *record);

/* Checks the rules of every callback. Returns false on a violation, which ends the run. */
bool record_arrive(struct record *record, const char *what, redlock_status status);

void worker_init(struct worker *worker, struct app *app, unsigned index);

/* Does the worker's next action, at once or within `ms`. */
void worker_act(struct worker *worker);
void worker_act_within(struct worker *worker, uint64_t ms);

/* Occasionally makes a call of the library inside a callback. */
void worker_be_rash(struct worker *worker);

/* Asks the nodes about some key. */
void worker_look(struct worker *worker);
void worker_look_within(struct worker *worker, uint64_t ms);
void looker_init(struct worker *worker);

/* Begins the client's crowds of questions, which end with the client. */
void questions_init(struct app *app);
void questions_come(struct app *app);
void questions_end(struct app *app);

/* Forgets the worker's lock, which has ended. */
void worker_forget_lock(struct worker *worker);

#endif
