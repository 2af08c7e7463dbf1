/*
 * A request for a lock becomes a waiter, and is passed to the library. When the lock is acquired,
 * the waiter ends, its hold gets the lock, and the client is notified. If the connection breaks
 * before the answer has been written, the lock is released: nobody knows its id. After that, the
 * lock's TTL covers clients that have died.
 *
 * If the connection breaks while the request waits, the request is canceled. The library still
 * calls back, perhaps with a lock that was acquired at that very moment, which is released.
 */
#include "answer.h"
#include "escape.h"
#include "fields.h"
#include "gateway.h"
#include "locks.h"
#include "views.h"

#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>

const char *const lock_modes[] = {"exclusive", "reader", "writer", NULL};

static void end_waiter(struct waiter *waiter) {
    TAILQ_REMOVE(&waiter->gateway->waiters.list, waiter, link);
    waiter->gateway->waiters.count--;
    free(waiter);
}

/* ------------------------------------------------------------------------------- a lock's end */

/*
 * Ends a hold whose lock nobody released: its validity is over, or masters lost it. The library
 * calls this a moment before the validity ends, so that a holder can stop. The HTTP client is not
 * notified, and keeps that moment.
 */
static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    struct gateway *gateway = hold->gateway;

    (void)lock;
    if (status == REDLOCK_EEXPIRED) {
        gateway->counts.lapsed++;
        hold_give_back_in_time(hold);
    } else {
        gateway->counts.lost++;
        hold_give_back(hold);
    }
}

/* ---------------------------------------------------------------------------- the lock is acquired
 */

/* Releases a lock whose answer could not be delivered. */
static void on_unwritten(void *arg) {
    struct hold *hold = arg;

    hold->connection = NULL;
    hold->gateway->counts.returned++;
    hold_give_back(hold);
}

/* Records that the answer has been written. */
static void on_written(void *arg) {
    struct hold *hold = arg;

    hold->connection = NULL;
}

static void report_acquired(struct connection *connection, struct hold *hold) {
    json_t *body = lock_json(hold);
    char id[HOLD_ID_SIZE];
    char location[sizeof("/v1/locks/") + 3 * GATEWAY_KEY_MAX + HOLD_ID_SIZE + 1];

    if (body == NULL || !connection_watch(connection, false, on_unwritten, on_written, hold)) {
        json_decref(body);
        hold_give_back(hold);
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "The lock was released again.");
        return;
    }
    hold->connection = connection;
    hold_promise(hold);
    snprintf(location, sizeof(location), "/v1/locks/%s/%s", hold->key, hold_id(hold, id));
    evhttp_add_header(evhttp_request_get_output_headers(connection->request), "Location", location);
    answer_json(connection, 201, body);
}

static void report_failed(struct connection *connection, const redlock_lock *lock,
                          redlock_status status) {
    const char *detail = redlock_explain(lock);

    switch (status) {
    case REDLOCK_EHELD:
        answer_problem_nodes(connection, PROBLEM_HELD, detail, lock_votes(lock));
        break;
    case REDLOCK_ENOQUORUM:
        answer_problem_nodes(connection, PROBLEM_NO_QUORUM, detail, lock_votes(lock));
        break;
    case REDLOCK_EACCESS:
        answer_problem_nodes(connection, PROBLEM_NO_ACCESS, detail, lock_votes(lock));
        break;
    case REDLOCK_EEXPIRED:
        answer_problem_nodes(connection, PROBLEM_EXPIRED, detail, lock_votes(lock));
        break;
    case REDLOCK_ENOMEM:
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "%s", detail);
        break;
    default:
        answer_problem(connection, PROBLEM_CLOSING, NULL, "Try another gateway.");
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct waiter *waiter = arg;
    struct connection *connection = waiter->connection;
    struct hold *hold = waiter->hold;
    bool is_gone = connection == NULL || connection_is_gone(connection);

    end_waiter(waiter);
    if (connection != NULL) {
        connection_forget(connection);
    }
    if (status != REDLOCK_OK) {
        hold_drop(hold);
        if (connection != NULL) {
            report_failed(connection, lock, status);
        }
        return;
    }
    hold->is_held = true;
    if (is_gone) {
        hold->gateway->counts.returned++;
        hold_give_back(hold);
        if (connection != NULL) {
            connection_drop(connection);
        }
        return;
    }
    report_acquired(connection, hold);
}

void waiters_close(struct waiters *waiters) {
    const struct waiter *waiter;

    TAILQ_FOREACH(waiter, &waiters->list, link) {
        redlock_cancel(waiter->hold->lock);
    }
}

/* --------------------------------------------------------------------------------- the request */

static void on_broken(void *arg) {
    struct waiter *waiter = arg;

    waiter->connection = NULL;
    waiter->gateway->counts.canceled++;
    redlock_cancel(waiter->hold->lock);
}

/* The terms of a request, from its body. */
struct terms {
    uint64_t ttl_ms;
    uint64_t wait_ms;
    bool fenced;
    int mode;
    char owner[OWNER_SIZE];
};

static bool read_terms(const struct exchange *exchange, struct terms *terms) {
    static const char *const names[] = {"ttl_ms", "wait_ms", "owner", "fenced", "mode", NULL};
    const struct settings *settings = exchange->gateway->settings;
    json_t *body = fields_read(exchange, names);
    bool is_good;

    *terms = (struct terms){.ttl_ms = 10000};
    if (terms->ttl_ms > settings->nodes.max_ttl_ms) {
        terms->ttl_ms = settings->nodes.max_ttl_ms;
    }
    if (body == NULL) {
        return false;
    }
    is_good = fields_ms(exchange, body, "ttl_ms", LOCKS_TTL_MIN_MS, settings->nodes.max_ttl_ms,
                        &terms->ttl_ms) &&
              fields_ms(exchange, body, "wait_ms", 0, settings->max_wait_ms, &terms->wait_ms) &&
              fields_flag(exchange, body, "fenced", &terms->fenced) &&
              fields_choice(exchange, body, "mode", lock_modes, &terms->mode) &&
              fields_owner(exchange, body, "owner", terms->owner);
    json_decref(body);
    if (is_good && terms->fenced && terms->mode == REDLOCK_READER) {
        answer_problem(exchange->connection, PROBLEM_BAD_FIELD, "body#/fenced",
                       "A reader has no fence: a fence is for a key that is held alone.");
        return false;
    }
    return is_good;
}

/* Returns whether the gateway has room for one more request; if not, answers. */
static bool has_room(const struct exchange *exchange) {
    const struct gateway *gateway = exchange->gateway;

    if (gateway->holds.count >= gateway->settings->max_locks) {
        answer_problem(exchange->connection, PROBLEM_FULL, "--max-locks",
                       "%zu locks are held, or asked for.", gateway->holds.count);
        return false;
    }
    if (gateway->waiters.count >= gateway->settings->max_waiters) {
        answer_problem(exchange->connection, PROBLEM_FULL, "--max-waiters",
                       "%zu requests for locks are under way.", gateway->waiters.count);
        return false;
    }
    return true;
}

static struct waiter *make_waiter(const struct exchange *exchange, const struct terms *terms) {
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    char key[3 * GATEWAY_KEY_MAX + 1];

    escape_encode(exchange->key, exchange->key_length, key);
    if (waiter == NULL || (waiter->hold = holds_add(exchange->gateway, key)) == NULL) {
        free(waiter);
        return NULL;
    }
    waiter->gateway = exchange->gateway;
    waiter->connection = exchange->connection;
    waiter->since_ms = connections_now_ms();
    waiter->hold->mode = (redlock_mode)terms->mode;
    waiter->hold->ttl_ms = terms->ttl_ms;
    snprintf(waiter->hold->owner, OWNER_SIZE, "%s", terms->owner);
    TAILQ_INSERT_TAIL(&waiter->gateway->waiters.list, waiter, link);
    waiter->gateway->waiters.count++;
    return waiter;
}

static void drop_waiter(struct waiter *waiter) {
    connection_forget(waiter->connection);
    hold_drop(waiter->hold);
    end_waiter(waiter);
}

/* Passes the request to the library. Returns its status. */
static redlock_status ask(const struct exchange *exchange, const struct terms *terms,
                          struct waiter *waiter) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = exchange->key;
    request.key_length = exchange->key_length;
    request.ttl_ms = terms->ttl_ms;
    request.wait_ms = terms->wait_ms;
    request.fenced = terms->fenced;
    request.mode = (redlock_mode)terms->mode;
    request.on_lost = on_lost;
    request.on_lost_arg = waiter->hold;
    return redlock_acquire(exchange->gateway->client, &request, on_acquired, waiter,
                           &waiter->hold->lock);
}

void acquire_serve(const struct exchange *exchange) {
    struct connection *connection = exchange->connection;
    struct terms terms;
    struct waiter *waiter;
    redlock_status status;

    if (!read_terms(exchange, &terms) || !has_room(exchange)) {
        return;
    }
    waiter = make_waiter(exchange, &terms);
    if (waiter == NULL) {
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "The request could not be kept.");
        return;
    }
    if (!connection_watch(connection, true, on_broken, NULL, waiter)) {
        drop_waiter(waiter);
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "The connection cannot be watched.");
        return;
    }
    status = ask(exchange, &terms, waiter);
    if (status == REDLOCK_OK) {
        return;
    }
    drop_waiter(waiter);
    if (status == REDLOCK_EINVAL) {
        answer_problem(connection, PROBLEM_BAD_REQUEST, NULL, "%s",
                       redlock_client_error(exchange->gateway->client));
    } else {
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "%s", redlock_strerror(status));
    }
}
