/*
 * Pays into an account in SQLite, which refuses a holder that has lost its lock without knowing it:
 * each row keeps the largest fence that it has seen, and admits no smaller one.
 *
 *     cc -o sqlite sqlite.c $(pkg-config --cflags --libs redlock libevent_core sqlite3)
 *     ./sqlite DATABASE ACCOUNT AMOUNT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * The lock is for the 1 s of work between reading and writing; for less, a transaction is enough.
 */
#include <event2/event.h>
#include <redlock.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static struct event_base *base;
static redlock_client *client;
static redlock_lock *held;
static struct event *work; /* timer that stands for the work */
static sqlite3 *database;
static const char *account;
static long long balance;
static long amount;
static int exit_code = EXIT_FAILURE;

static const char make_table[] = "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY,"
                                 " balance INTEGER NOT NULL, fence INTEGER NOT NULL)";
/* Also stores the fence: otherwise an earlier holder could still write after this read. */
static const char read_balance[] = "INSERT INTO accounts VALUES (?1, 0, ?2) ON CONFLICT (name)"
                                   " DO UPDATE SET fence = ?2 WHERE fence <= ?2 RETURNING balance";
static const char write_balance[] = "UPDATE accounts SET balance = ?3, fence = ?2"
                                    " WHERE name = ?1 AND fence <= ?2 RETURNING balance";

/* Runs a statement as a transaction of its own. If it returns no row, the fence was too small. */
static bool run(const char *sql) {
    sqlite3_stmt *statement = NULL;
    bool has_passed = false;
    int result;

    sqlite3_prepare_v2(database, sql, -1, &statement, NULL); /* if it fails, so do the next calls */
    sqlite3_bind_text(statement, 1, account, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)redlock_fence(held));
    sqlite3_bind_int64(statement, 3, balance); /* read_balance has no third parameter */
    if ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        balance = sqlite3_column_int64(statement, 0);
        has_passed = (result = sqlite3_step(statement)) == SQLITE_DONE; /* the commit */
    }
    if (!has_passed) {
        fprintf(stderr, "%s\n", result == SQLITE_DONE ? "refused" : sqlite3_errmsg(database));
    }
    sqlite3_finalize(statement);
    return has_passed;
}

static void end(redlock_lock *lock) {
    redlock_release(lock, NULL, NULL); /* its status does not matter: the fence has decided */
    redlock_client_close(client, NULL, NULL);
}

static void on_work_done(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    balance += amount;
    if (run(write_balance)) {
        printf("balance %lld\n", balance);
        exit_code = EXIT_SUCCESS;
    }
    end(held);
}

/* Skips the rest of the work, which would be refused. */
static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)status, (void)arg;
    fprintf(stderr, "lost: %s\n", redlock_explain(lock));
    event_del(work), end(lock);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg;
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_explain(lock));
        redlock_client_close(client, NULL, NULL);
        return;
    }
    held = lock;
    if (!run(read_balance) || event_add(work, &(struct timeval){.tv_sec = 1}) != 0) {
        end(lock);
    }
}

int main(int argc, char **argv) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error = {.message = "usage: sqlite DATABASE ACCOUNT AMOUNT NODE..."};
    char *rest;

    if ((base = event_base_new()) == NULL ||
        (work = evtimer_new(base, on_work_done, NULL)) == NULL || argc < 5 ||
        (amount = strtol(argv[3], &rest, 10)) < -INT32_MAX || amount > INT32_MAX || *rest != '\0' ||
        sqlite3_open(argv[1], &database) != SQLITE_OK ||
        sqlite3_busy_timeout(database, 500) != SQLITE_OK || /* for which it blocks the loop */
        sqlite3_exec(database, make_table, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s\n", database == NULL ? error.message : sqlite3_errmsg(database));
        return 2;
    }
    request.key = account = argv[2];
    request.wait_ms = 60000;
    request.watchdog = request.fenced = true;
    request.on_lost = on_lost;
    options.nodes = (const char *const *)argv + 4;
    options.node_count = (size_t)argc - 4;
    if (redlock_client_create(base, &options, &client, &error) != REDLOCK_OK ||
        redlock_acquire(client, &request, on_acquired, NULL, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", client == NULL ? error.message : redlock_client_error(client));
        return 2;
    }
    event_base_dispatch(base);
    event_free(work), event_base_free(base), sqlite3_close(database);
    return exit_code;
}
