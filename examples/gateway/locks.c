/*
 * Each of these requests is an errand, which ends with the library's callback. If the connection
 * breaks before that, a renewal or release that has begun is still carried out.
 */
#include "locks.h"

#include "answer.h"
#include "escape.h"
#include "fields.h"
#include "gateway.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

struct errand {
    struct gateway *gateway;
    struct connection *connection; /* NULL: it broke */
    struct hold *hold;             /* valid only if a renewal succeeds: otherwise it may be gone */
    uint64_t ttl_ms;
    char *key; /* for inspections */
};

static void on_broken(void *arg) {
    struct errand *errand = arg;

    errand->connection = NULL;
}

static struct errand *begin_errand(const struct exchange *exchange) {
    struct errand *errand = calloc(1, sizeof(*errand));
    char key[3 * GATEWAY_KEY_MAX + 1];

    escape_encode(exchange->key, exchange->key_length, key);
    if (errand == NULL || (errand->key = strdup(key)) == NULL) {
        free(errand);
        answer_problem(exchange->connection, PROBLEM_NO_MEMORY, NULL, "Out of memory.");
        return NULL;
    }
    errand->gateway = exchange->gateway;
    errand->connection = exchange->connection;
    connection_watch(exchange->connection, false, on_broken, NULL, errand);
    return errand;
}

/* Ends the errand. Returns the connection to answer, or NULL. */
static struct connection *end_errand(struct errand *errand) {
    struct connection *connection = errand->connection;

    if (connection != NULL) {
        connection_forget(connection);
    }
    free(errand->key);
    free(errand);
    return connection;
}

/* Returns the hold that the path names; if there is none, answers so and returns NULL. */
static struct hold *find(const struct exchange *exchange) {
    char key[3 * GATEWAY_KEY_MAX + 1];
    struct hold *hold;
    bool is_foreign;

    escape_encode(exchange->key, exchange->key_length, key);
    hold = holds_find(&exchange->gateway->holds, exchange->id, key, &is_foreign);
    if (is_foreign) { /* it may still be held, for the validity that its holder got */
        answer_problem(exchange->connection, PROBLEM_UNKNOWN_LOCK, "path:id",
                       "The lock was acquired at another gateway, or before this one was started "
                       "again: if it was held then, it is until its time is over.");
    } else if (hold == NULL) {
        answer_problem(
            exchange->connection, PROBLEM_NO_SUCH_LOCK, "path:id",
            "There is no lock of this key with this id: it was released, or lost, or its "
            "time is over.");
    }
    return hold;
}

/* Answers with the problem that corresponds to a status of the library. */
static void answer_status(struct connection *connection, const redlock_lock *lock,
                          redlock_status status) {
    const char *detail = redlock_explain(lock);

    switch (status) {
    case REDLOCK_ELOST:
        answer_problem_nodes(connection, PROBLEM_LOST, detail, lock_votes(lock));
        break;
    case REDLOCK_ENOQUORUM:
        answer_problem_nodes(connection, PROBLEM_NO_QUORUM, detail, lock_votes(lock));
        break;
    case REDLOCK_EEXPIRED:
        answer_problem_nodes(connection, PROBLEM_EXPIRED, detail, lock_votes(lock));
        break;
    case REDLOCK_ENOMEM:
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "%s", detail);
        break;
    case REDLOCK_ECANCELED:
        answer_problem(connection, PROBLEM_NO_SUCH_LOCK, "path:id",
                       "The lock was released meanwhile.");
        break;
    default:
        answer_problem(connection, PROBLEM_CLOSING, NULL, "%s", redlock_strerror(status));
    }
}

/* Answers a call that the library has refused. */
static void answer_refusal(const struct exchange *exchange, redlock_status status) {
    const char *detail = redlock_client_error(exchange->gateway->client);

    switch (status) {
    case REDLOCK_EBUSY:
        answer_problem(exchange->connection, PROBLEM_BUSY, NULL, "%s", detail);
        break;
    case REDLOCK_ELOST:
        answer_problem(exchange->connection, PROBLEM_LOST, NULL, "%s", detail);
        break;
    case REDLOCK_EINVAL:
        answer_problem(exchange->connection, PROBLEM_BAD_REQUEST, NULL, "%s", detail);
        break;
    default:
        answer_problem(exchange->connection, PROBLEM_NO_MEMORY, NULL, "%s",
                       redlock_strerror(status));
    }
}

/* ------------------------------------------------------------------------------------- renewals */

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct errand *errand = arg;
    struct hold *hold = errand->hold;
    uint64_t ttl_ms = errand->ttl_ms;
    struct connection *connection = end_errand(errand);

    if (status == REDLOCK_OK) {
        hold->ttl_ms = ttl_ms;
        hold_promise(hold);
    }
    if (connection == NULL) {
        return;
    }
    if (status == REDLOCK_OK) {
        answer_json(connection, 200, lock_json(hold));
    } else {
        answer_status(connection, lock, status);
    }
}

void renew_serve(const struct exchange *exchange) {
    static const char *const names[] = {"ttl_ms", NULL};
    uint64_t max_ttl_ms = exchange->gateway->settings->nodes.max_ttl_ms;
    struct hold *hold = find(exchange);
    json_t *body = hold == NULL ? NULL : fields_read(exchange, names);
    struct errand *errand;
    redlock_status status;
    uint64_t ttl_ms;
    bool is_good;

    if (body == NULL) {
        return;
    }
    ttl_ms = hold->ttl_ms;
    is_good = fields_ms(exchange, body, "ttl_ms", LOCKS_TTL_MIN_MS, max_ttl_ms, &ttl_ms);
    json_decref(body);
    if (!is_good || (errand = begin_errand(exchange)) == NULL) {
        return;
    }
    errand->hold = hold;
    errand->ttl_ms = ttl_ms;
    status = redlock_extend(hold->lock, ttl_ms, on_extended, errand);
    if (status != REDLOCK_OK) {
        end_errand(errand);
        answer_refusal(exchange, status);
    }
}

/* ------------------------------------------------------------------------------------- releases */

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct connection *connection = end_errand(arg);

    if (connection == NULL) {
        return;
    }
    if (status == REDLOCK_OK) {
        answer_empty(connection);
    } else {
        answer_status(connection, lock, status);
    }
}

void release_serve(const struct exchange *exchange) {
    struct hold *hold = fields_none(exchange) ? find(exchange) : NULL;
    struct errand *errand = hold == NULL ? NULL : begin_errand(exchange);
    redlock_status status;

    if (errand == NULL) {
        return;
    }
    status = redlock_release(hold->lock, on_released, errand);
    if (status != REDLOCK_OK) {
        end_errand(errand);
        answer_refusal(exchange, status);
        return;
    }
    hold_drop(hold);
}

/* ----------------------------------------------------------------------------------- inspection */

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct errand *errand = arg;
    struct gateway *gateway = errand->gateway;
    json_t *body = status == REDLOCK_OK ? view_json(gateway, errand->key, view) : NULL;
    struct connection *connection = end_errand(errand);

    if (connection == NULL) {
        json_decref(body);
    } else if (status == REDLOCK_OK) {
        answer_json(connection, 200, body);
    } else if (status == REDLOCK_ENOQUORUM) {
        answer_problem_nodes(connection, PROBLEM_NO_QUORUM,
                             "The masters that did not answer could change who holds the key.",
                             view_nodes(view));
    } else {
        answer_problem(connection, PROBLEM_CLOSING, NULL, "%s", redlock_strerror(status));
    }
}

void inspect_serve(const struct exchange *exchange) {
    struct errand *errand = fields_none(exchange) ? begin_errand(exchange) : NULL;
    redlock_status status;

    if (errand == NULL) {
        return;
    }
    status = redlock_inspect(exchange->gateway->client, exchange->key, exchange->key_length,
                             on_view, errand);
    if (status != REDLOCK_OK) {
        end_errand(errand);
        answer_refusal(exchange, status);
    }
}
