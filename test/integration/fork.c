/*
 * A child of fork() has its parent's memory, clients and locks included, and would send on the same
 * connections. In the child the library refuses all calls on the parent's clients and locks; the
 * child may make clients of its own.
 */
#include "harness.h"
#include "master_data.h"
#include "seclusion.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "orders:42"
#define OTHER_KEY "orders:43"

/* Returns false at the first condition that does not hold: cmocka may not run in a child. */
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* The parent's objects that a child inherits. */
struct legacy {
    struct fixture *f;
    redlock_client *client;
    redlock_lock *lock;    /* held */
    redlock_lock *pending; /* being acquired; NULL: none */
};

static void run_child(bool (*work)(const struct legacy *legacy), const struct legacy *legacy) {
    int result;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(work(legacy) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), EXIT_SUCCESS);
}

/* ---- clients of the parent ---- */

static void on_nothing(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
}

static void on_no_view(redlock_status status, const redlock_view *view, void *arg) {
    (void)status;
    (void)view;
    (void)arg;
}

static void on_no_fence(redlock_status status, void *arg) {
    (void)status;
    (void)arg;
}

static bool is_refused(redlock_client *client, redlock_status status) {
    return status == REDLOCK_EINVAL && strstr(redlock_client_error(client), "child (fork)") != NULL;
}

static bool locks_are_refused(const struct legacy *legacy) {
    redlock_client *client = legacy->client;
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    redlock_lock *lock = legacy->lock;

    HOLDS(redlock_validity_ms(legacy->lock) == 0);
    HOLDS(is_refused(client, redlock_release(legacy->lock, on_nothing, NULL)));
    HOLDS(is_refused(client, redlock_extend(legacy->lock, 0, on_nothing, NULL)));
    HOLDS(is_refused(client, redlock_cancel(legacy->pending)));
    HOLDS(is_refused(client, redlock_acquire(client, &request, on_nothing, NULL, &lock)));
    HOLDS(lock == NULL);
    return true;
}

static bool clients_are_refused(const struct legacy *legacy) {
    redlock_client *client = legacy->client;
    const char *const *uris = masters_uris(legacy->f->masters);

    HOLDS(is_refused(client, redlock_inspect(client, KEY, 0, on_no_view, NULL)));
    HOLDS(is_refused(client, redlock_check_fence(client, KEY, 0, 1, on_no_fence, NULL)));
    HOLDS(is_refused(client, redlock_client_change_nodes(client, uris, 3)));
    HOLDS(is_refused(client, redlock_client_commit_nodes(client)));
    HOLDS(is_refused(client, redlock_client_abandon_nodes(client)));
    return true;
}

/* Memory that is only read is as it was when the process forked. */
static bool memory_is_read(const struct legacy *legacy) {
    redlock_node_report reports[5];

    HOLDS(strcmp(redlock_key(legacy->lock, NULL), KEY) == 0);
    HOLDS(redlock_fence(legacy->lock) > 0);
    HOLDS(redlock_client_nodes(legacy->client, NULL, 0) == 5);
    HOLDS(redlock_report(legacy->lock, reports, 5) == 5);
    HOLDS(strlen(redlock_explain(legacy->lock)) > 0);
    return true;
}

static bool is_powerless(const struct legacy *legacy) {
    HOLDS(seclude(false)); /* it touches no connection either */
    HOLDS(locks_are_refused(legacy) && clients_are_refused(legacy) && memory_is_read(legacy));
    redlock_client_close(legacy->client, NULL, NULL);
    HOLDS(locks_are_refused(legacy)); /* refused as inherited, not as closed */
    return true;
}

static void a_child_can_do_nothing_with_its_parents_locks(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct legacy legacy = {.f = f, .client = client};

    request.fenced = true;
    legacy.lock = hold_for(f, client, &request);
    wait_all_answered(f, client);
    request.wait_ms = REDLOCK_FOREVER;
    struct call *call = begin_acquire(f, client, &request); /* not released by any process */
    legacy.pending = call->lock;
    run_child(is_powerless, &legacy);

    assert_true(redlock_validity_ms(legacy.lock) > 0);
    assert_int_equal(holders(f, KEY), 5);
    assert_int_equal(extend(f, legacy.lock, 0), REDLOCK_OK);
    assert_int_equal(redlock_cancel(legacy.pending), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    assert_int_equal(let_go(f, legacy.lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* ---- clients of the child ---- */

struct own {
    struct event_base *base;
    redlock_client *client;
    redlock_status status;
};

static void on_own_lock(redlock_lock *lock, redlock_status status, void *arg) {
    struct own *own = arg;

    own->status = status;
    if (status == REDLOCK_OK && redlock_validity_ms(lock) == 0) {
        own->status = REDLOCK_EEXPIRED;
    }
    redlock_client_close(own->client, NULL, NULL); /* releases the lock, and the loop ends */
}

static bool makes_a_client(const struct legacy *legacy) {
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    redlock_options options = patient_options(legacy->f, masters_uris(legacy->f->masters), 5);
    struct own own = {.base = event_base_new(), .status = REDLOCK_EINVAL};

    options.log = NULL;
    options.allocator = NULL;
    HOLDS(own.base != NULL);
    HOLDS(redlock_client_create(own.base, &options, &own.client, NULL) == REDLOCK_OK);
    HOLDS(redlock_acquire(own.client, &request, on_own_lock, &own, NULL) == REDLOCK_OK);
    HOLDS(event_base_dispatch(own.base) >= 0);
    event_base_free(own.base);
    HOLDS(own.status == REDLOCK_OK);
    HOLDS(redlock_validity_ms(legacy->lock) == 0);
    return true;
}

/*
 * A child of a child may use neither the clients that its parent inherited nor those that it made.
 */
static bool has_a_child_of_its_own(const struct legacy *legacy) {
    redlock_options options = patient_options(legacy->f, masters_uris(legacy->f->masters), 5);
    struct own own = {.base = event_base_new()};
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    int result;

    options.log = NULL;
    options.allocator = NULL;
    HOLDS(own.base != NULL);
    HOLDS(redlock_client_create(own.base, &options, &own.client, NULL) == REDLOCK_OK);
    pid_t pid = fork();
    HOLDS(pid >= 0);
    if (pid == 0) {
        _exit(
            is_refused(own.client, redlock_acquire(own.client, &request, on_nothing, NULL, NULL)) &&
                    makes_a_client(legacy)
                ? EXIT_SUCCESS
                : EXIT_FAILURE);
    }
    HOLDS(waitpid(pid, &result, 0) == pid && WIFEXITED(result));
    HOLDS(WEXITSTATUS(result) == EXIT_SUCCESS);
    HOLDS(redlock_acquire(own.client, &request, on_own_lock, &own, NULL) == REDLOCK_OK);
    HOLDS(event_base_dispatch(own.base) >= 0);
    event_base_free(own.base);
    HOLDS(own.status == REDLOCK_OK);
    return true;
}

static void a_child_makes_a_client_of_its_own(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    const struct legacy legacy = {
        .f = f, .client = client, .lock = hold(f, client, KEY, LONG_TTL_MS)};

    run_child(makes_a_client, &legacy);
    run_child(has_a_child_of_its_own, &legacy);
    wait_released(f, OTHER_KEY);
    assert_int_equal(let_go(f, legacy.lock), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_child_can_do_nothing_with_its_parents_locks),
        ON_FIVE_MASTERS(a_child_makes_a_client_of_its_own),
    };

    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
