#include "sweep.h"

#include "world.h"

#include <sanitizer/lsan_interface.h>
#include <unistd.h>

/*
 * The time after which a run, which takes milliseconds, counts as hanging in the loop, and is
 * ended.
 */
#define TIMEOUT_SECONDS 30

/* A number of requests that no scenario reaches. */
#define SITES_MAX 20000

const struct form sweep_forms[] = {{.count = 1}, {.count = 3}, {1, .closes_at_once = true}};
const unsigned sweep_form_count = sizeof(sweep_forms) / sizeof(sweep_forms[0]);

static bool is_closed(const void *arg) {
    return ((const struct app *)arg)->is_closed;
}

static bool is_idle(const void *arg) {
    return !app_is_busy(arg);
}

static void close_app(struct app *app) {
    if (app->client != NULL && !app->is_closing) {
        app_close(app);
    }
    if (app->client != NULL) {
        world_wait(is_closed, app, "the client is closed");
    }
}

static void close_all(struct app *apps) {
    for (unsigned i = 0; i < SCENARIO_APPS; i++) {
        close_app(&apps[i]);
    }
}

/*
 * Asserts that requests are granted again after the failure, at the latest when stalled nodes are
 * back.
 */
static void assert_works(struct app *app) {
    redlock_request request = app_request("afterwards");
    request.ttl_ms = app->options.max_ttl_ms;
    struct hold *hold;
    unsigned tries = 0;
    request.wait_ms = 5000;
    do {
        CHECK(tries++ < 10);
        hold = app_acquire(app, &request);
        CHECK(hold != NULL);
        world_wait(is_idle, app, "an acquisition ends when nothing fails any more");
        if (hold->stage == HOLD_HELD) {
            CHECK(app_release(hold, true) == REDLOCK_OK);
            world_wait(is_idle, app, "a release ends when nothing fails any more");
        }
    } while (hold->acquired != REDLOCK_OK || hold->released != REDLOCK_OK);
}

static void give_back(struct app *app) {
    for (unsigned i = 0; i < app->count; i++) {
        if (app->holds[i].stage == HOLD_HELD || app->holds[i].stage == HOLD_LOST) {
            CHECK(app_release(&app->holds[i], true) == REDLOCK_OK);
        }
    }
    world_wait(is_idle, app, "a release ends when nothing fails any more");
}

static void assert_clients_work(struct app *apps) {
    for (unsigned i = 0; i < SCENARIO_APPS; i++) {
        if (apps[i].client != NULL && !apps[i].is_closing) {
            world_wait(is_idle, &apps[i], "all callbacks have come when nothing fails any more");
            give_back(&apps[i]);
            assert_works(&apps[i]);
        }
    }
}

/* Returns whether no client was closed, or notified that a key is left to its TTL. */
static bool must_free_all_keys(const struct app *apps) {
    bool owes = true;
    for (unsigned i = 0; i < SCENARIO_APPS; i++) {
        owes &= !apps[i].leaves_keys && !apps[i].is_closing;
    }
    return owes;
}

/* Asserts that all keys are released long before their TTL ends. */
static void assert_no_key_is_left(const struct app *apps) {
    for (unsigned ms = 0; ms < 3000 && masters_having_any() > 0 && must_free_all_keys(apps); ms++) {
        world_pass_ms(1);
    }
    CHECK(masters_having_any() == 0 || !must_free_all_keys(apps));
}

static void assert_new_client_works(void) {
    static struct app app;
    app_init(&app, ADDRESS_SOCKET);
    CHECK(app_open(&app));
    assert_works(&app);
    close_app(&app);
    app_check_end(&app);
}

bool sweep_run(const struct scenario *scenario, enum fault fault, const struct form *form,
               unsigned n) {
    static struct app apps[SCENARIO_APPS];
    alarm(TIMEOUT_SECONDS);
    world_begin(fault_is_of_loop(fault));
    for (unsigned i = 0; i < SCENARIO_APPS; i++) {
        app_init(&apps[i], scenario->address);
    }
    faults_arm(fault, n, form->count);
    scenario->play(apps);
    if (form->closes_at_once) {
        close_all(apps);
    }
    faults_disarm();
    masters_start(MASTERS_ALL);
    masters_behave(MASTERS_ALL, MANNER_WELL);
    assert_clients_work(apps);
    assert_no_key_is_left(apps);
    close_all(apps);
    for (unsigned i = 0; i < SCENARIO_APPS; i++) {
        app_check_end(&apps[i]);
    }
    assert_new_client_works();
    world_end();
    return faults_struck() > 0;
}

enum sweep_result sweep_all(const struct scenario *scenario, enum fault fault, unsigned forms,
                            struct progress *progress, bool looks_each_time) {
    for (unsigned form = 0; form < forms; form++) {
        bool was_made = true;
        progress->form = form;
        for (unsigned n = 1; was_made; n++) {
            progress->n = n;
            CHECK(n < SITES_MAX);
            was_made = sweep_run(scenario, fault, &sweep_forms[form], n);
            progress->sites += form == 0 && was_made;
            if (looks_each_time && __lsan_do_recoverable_leak_check()) {
                return SWEEP_LEAKED;
            }
        }
    }
    return __lsan_do_recoverable_leak_check() ? SWEEP_LEAKED : SWEEP_PASSED;
}
