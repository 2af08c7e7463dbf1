/* What an application and its workers share; everybody else includes app.h. */
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

/* It holds no lock for long; it has the crowd, and is preempted, where there is such. */
static inline bool app_is_hurried(const struct app *app) {
    return app->plan->has_hurry && app->process.index % 2 == 1;
}

/* The most before its next request: who is in no hurry has time. */
static inline uint64_t app_think_ms(const struct app *app) {
    return app->plan->has_hurry && !app_is_hurried(app) ? 2000 : app->plan->think_ms;
}

/* Around each call of the library: no callback may come in between. */
static inline void app_begin_call(struct app *app) {
    app->is_calling = true;
}

static inline void app_end_call(struct app *app) {
    app->is_calling = false;
}

void app_close_client(struct app *app);

/* A request that is made now; record_close: it was refused, or its callback need not come. */
struct record *record_expect(struct worker *worker);
void record_close(struct record *record);

/* What must be true of each callback. False: it was not, and the run is over. */
bool record_arrive(struct record *record, const char *what, redlock_status status);

void worker_init(struct worker *worker, struct app *app, unsigned index);

/* Does the next thing, at once or within so many milliseconds. */
void worker_act(struct worker *worker);
void worker_act_within(struct worker *worker, uint64_t ms);

/* A callback may call anything: once in a while it does. */
void worker_be_rash(struct worker *worker);

/* Asks the nodes about some key. */
void worker_look(struct worker *worker);
void worker_look_within(struct worker *worker, uint64_t ms);
void looker_init(struct worker *worker);

/* The crowd of a client comes, and comes again; it ends with its client. */
void questions_init(struct app *app);
void questions_come(struct app *app);
void questions_end(struct app *app);

/* It has no lock any more. */
void worker_forget_lock(struct worker *worker);

#endif
