/*
 * Checks the table of rights in the operating guide on real masters. For each row, a user with the
 * rights of the first row and of this row can use the feature, and a user who lacks any one right
 * of this row cannot.
 *
 *   rights PAGE
 */
#include "masters.h"

#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 3
#define SPARE (2 * NODES) /* masters: the nodes, a replica of each, and one to change to */
#define KEY "orders:42"
#define OTHER_KEY "orders:43"
#define QUEUE KEY "::queue"
#define USER "locker"
#define TTL_MS 500
#define MAX_TTL_MS 2000

/* The stand-in for a bar that is part of a right, while a row of the table is split. */
#define HIDDEN_BAR '\x01'
#define LIMIT_S 60
#define WORDS_MAX 32

struct words {
    char *word[WORDS_MAX]; /* ACL rules, such as "~orders:42" and "+get" */
    size_t count;
};

/* One run: a client, and the results of its requests. */
struct run {
    struct masters *masters;
    struct event_base *base;
    redlock_client *client;
    redlock_client *admin; /* of the default user, who has all rights */
    char uris[2 * NODES + 1][128];
    const char *nodes[2 * NODES + 1];
    bool has_all_rights; /* whether the user has all rights of the feature */
    bool is_over;
    redlock_status status;
    redlock_lock *lock;
    uint32_t readers;
    size_t queue_owners;
};

/* ------------------------------------------------------------------------------- requests */

static void die(const char *why) {
    printf("Bail out! %s\n", why);
    exit(EXIT_FAILURE);
}

static void on_limit(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    *(bool *)arg = true;
}

/* Runs the loop until `is_over`. */
static void wait_for(struct run *run) {
    struct timeval limit = {.tv_sec = LIMIT_S};
    bool is_late = false;
    struct event *timer = evtimer_new(run->base, on_limit, &is_late);

    if (timer == NULL || evtimer_add(timer, &limit) != 0) {
        die("no timer");
    }
    while (!run->is_over) {
        if (event_base_loop(run->base, EVLOOP_ONCE) < 0 || is_late) {
            die("a request has not ended");
        }
    }
    event_free(timer);
}

static void on_end(redlock_lock *lock, redlock_status status, void *arg) {
    struct run *run = arg;

    run->status = status;
    run->lock = lock;
    run->is_over = true;
}

static void on_fence(redlock_status status, void *arg) {
    on_end(NULL, status, arg);
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct run *run = arg;

    run->readers = view->readers;
    run->queue_owners = view->queue_owner_count;
    on_end(NULL, status, arg);
}

static void on_closed(void *arg) {
    on_end(NULL, REDLOCK_OK, arg);
}

/* Waits for a call that has returned `accepted`; returns whether it succeeded. */
static bool ends_well(struct run *run, redlock_status accepted) {
    if (accepted == REDLOCK_OK) {
        wait_for(run);
        accepted = run->status;
    }
    run->is_over = false;
    return accepted == REDLOCK_OK;
}

static redlock_request request_for(const char *key) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = key;
    request.ttl_ms = TTL_MS;
    return request;
}

static bool acquire(struct run *run, redlock_client *client, const redlock_request *request) {
    return ends_well(run, redlock_acquire(client, request, on_end, run, NULL));
}

static bool release(struct run *run) {
    return ends_well(run, redlock_release(run->lock, on_end, run));
}

/* Acquires, extends and releases a lock; returns whether all succeeded. */
static bool live(struct run *run, const redlock_request *request) {
    if (!acquire(run, run->client, request)) {
        return false;
    }
    bool is_extended = ends_well(run, redlock_extend(run->lock, 2 * TTL_MS, on_end, run));
    return release(run) && is_extended;
}

static void close_client(struct run *run, redlock_client *client) {
    redlock_client_close(client, on_closed, run);
    wait_for(run);
    run->is_over = false;
}

static redlock_client *connect_to(struct run *run, const char *login, const char *path) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_client *client = NULL;
    redlock_error error;

    for (size_t i = 0; i <= SPARE; i++) {
        snprintf(run->uris[i], sizeof(run->uris[i]), "redis://%s%s%s", login,
                 masters_address(run->masters, i), path);
        run->nodes[i] = run->uris[i];
    }
    options.nodes = run->nodes;
    options.node_count = NODES;
    options.max_ttl_ms = MAX_TTL_MS;
    options.node_timeout_ms = 5000; /* so that a busy machine does not look like a missing right */
    options.stall_timeout_ms = 20000;
    if (redlock_client_create(run->base, &options, &client, &error) != REDLOCK_OK) {
        die(error.message);
    }
    return client;
}

/* ------------------------------------------------------------------------------- features */

/* Runs twice: the first call of a script on a connection is an EVAL, later ones are EVALSHA. */
static bool use_lock(struct run *run) {
    redlock_request request = request_for(KEY);

    return live(run, &request) && live(run, &request);
}

static bool use_fence(struct run *run) {
    redlock_request request = request_for(KEY);

    request.fenced = true;
    return live(run, &request);
}

static bool use_check(struct run *run) {
    return ends_well(run,
                     redlock_check_fence(run->client, KEY, 0, UINT64_C(1) << 52, on_fence, run));
}

static bool use_inspection(struct run *run) {
    redlock_request request = request_for(KEY);

    request.mode = REDLOCK_READER;
    if (!acquire(run, run->admin, &request)) {
        die("the administrator gets no lock");
    }
    redlock_lock *lock = run->lock;
    for (size_t i = 0; i < NODES; i++) {
        free(masters_query(run->masters, i, "ZADD " QUEUE " 1 %s", "waiter channel 1000 0 0"));
    }
    bool is_good = ends_well(run, redlock_inspect(run->client, KEY, 0, on_view, run));
    run->lock = lock;
    return release(run) && is_good && run->readers == 1 && run->queue_owners == 1;
}

static bool use_permits(struct run *run) {
    redlock_request request = request_for(KEY);

    request.permits = 2;
    request.fenced = true;
    return live(run, &request);
}

static bool use_modes(struct run *run) {
    redlock_request request = request_for(KEY);

    request.mode = REDLOCK_READER;
    if (!live(run, &request)) {
        return false;
    }
    request.mode = REDLOCK_WRITER;
    return live(run, &request);
}

/* Returns the number of nodes that watch a key. */
static size_t count_watching(struct run *run) {
    size_t count = 0;

    for (size_t i = 0; i < NODES; i++) {
        char *info = masters_query(run->masters, i, "INFO stats");
        count += strstr(info, "tracking_total_keys:1\r") != NULL;
        free(info);
    }
    return count;
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    *(bool *)arg = true;
}

/*
 * Returns whether each node has watched the key before its holder, who no longer renews, lost it.
 */
static bool use_watch(struct run *run) {
    redlock_request request = request_for(KEY);
    struct timeval tick = {.tv_usec = 10000};
    bool is_lost = false;
    bool is_watched = false;

    request.ttl_ms = MAX_TTL_MS;
    request.watchdog = request.watch_key = true;
    request.max_hold_ms = 1;
    request.on_lost = on_lost;
    request.on_lost_arg = &is_lost;
    if (!acquire(run, run->client, &request)) {
        return false;
    }
    while (!is_lost && !is_watched) {
        event_base_loopexit(run->base, &tick);
        event_base_dispatch(run->base);
        is_watched = count_watching(run) == NODES;
    }
    release(run);
    return is_watched;
}

static bool use_several(struct run *run) {
    const char *keys[] = {KEY, OTHER_KEY};
    redlock_request request = request_for(NULL);

    request.keys = keys;
    request.key_count = 2;
    return live(run, &request);
}

static bool use_stay(struct run *run) {
    redlock_request request = request_for(KEY);

    request.min_hold_ms = 10;
    request.lock_delay_ms = TTL_MS;
    request.wait_ms = 10 * TTL_MS;
    return live(run, &request) && live(run, &request);
}

static bool use_change(struct run *run) {
    const char *next[NODES] = {run->nodes[0], run->nodes[1], run->nodes[SPARE]};
    redlock_request request = request_for(KEY);
    struct timeval tick = {.tv_usec = 10000};
    redlock_status status;

    if (redlock_client_change_nodes(run->client, next, NODES) != REDLOCK_OK ||
        !live(run, &request)) {
        return false;
    }
    while ((status = redlock_client_commit_nodes(run->client)) == REDLOCK_EBUSY) {
        event_base_loopexit(run->base, &tick);
        event_base_dispatch(run->base);
    }
    return status == REDLOCK_OK && live(run, &request);
}

static bool use_replicas(struct run *run) {
    redlock_request request = request_for(KEY);

    request.wait_replicas = 1;
    return live(run, &request);
}

/* ------------------------------------------------------------------------ waiting in the queue */

/*
 * Gives the key at the masters to a holder that does not release it. If a right is missing, the key
 * expires, because the request may never queue.
 */
static void take_by_hand(struct run *run) {
    for (size_t i = 0; i < NODES; i++) {
        free(masters_query(run->masters, i, "SET " KEY " somebody PX %d",
                           run->has_all_rights ? 1000 * LIMIT_S : 3000));
        free(masters_query(run->masters, i, "DEL redlock:waiting redlock:queues"));
        free(masters_query(run->masters, i, "CONFIG RESETSTAT"));
    }
}

/* Makes the key expire, which pushes it to no waiter. */
static void expire_by_hand(struct run *run) {
    for (size_t i = 0; i < NODES; i++) {
        free(masters_query(run->masters, i, "PEXPIRE " KEY " 1"));
    }
}

/* Returns the number of nodes that answer the command with this number. */
static size_t count_nodes(struct run *run, const char *command, long long number) {
    size_t count = 0;

    for (size_t i = 0; i < NODES; i++) {
        count += masters_query_integer(run->masters, i, command) == number;
    }
    return count;
}

/* Returns the number of nodes that have executed a command since the last CONFIG RESETSTAT. */
static size_t count_executed(struct run *run, const char *command) {
    size_t count = 0;

    for (size_t i = 0; i < NODES; i++) {
        char *info = masters_query(run->masters, i, "INFO commandstats");
        char begin[64];
        snprintf(begin, sizeof(begin), "cmdstat_%s:calls=", command);
        const char *counts = strstr(info, begin);
        count += counts != NULL && counts[strlen(begin)] != '0';
        free(info);
    }
    return count;
}

/*
 * Returns whether nodes have checked for listeners. Before Redis 7 subcommands are not
 * distinguished.
 */
static bool is_listener_counted(struct run *run) {
    return count_executed(run, "pubsub|numsub") + count_executed(run, "pubsub") > NODES / 2;
}

/*
 * Runs both loops until the request of `run` has an entry at all nodes. Returns false when the
 * request ends before that, because the key has expired.
 */
static bool is_queued_after(struct run *run, struct run *other) {
    struct timeval tick = {.tv_usec = 10000};

    while (!run->is_over && count_nodes(run, "ZCARD " QUEUE, 1) < NODES) {
        event_base_loop(other->base, EVLOOP_NONBLOCK);
        event_base_loopexit(run->base, &tick);
        event_base_dispatch(run->base);
    }
    return !run->is_over;
}

static redlock_request patient_request(void) {
    redlock_request request = request_for(KEY);

    request.ttl_ms = MAX_TTL_MS;
    request.wait_ms = 1000 * LIMIT_S;
    request.watchdog = true;
    return request;
}

/* Begins to wait for a holder; returns whether the request is queued until it has the lock. */
static bool wait_for_somebody(struct run *run, struct run *other) {
    redlock_request request = patient_request();

    take_by_hand(run);
    if (redlock_acquire(run->client, &request, on_end, run, NULL) != REDLOCK_OK) {
        return false;
    }
    bool is_in_queue = is_queued_after(run, other) && count_executed(run, "zcount") == NODES &&
                       count_nodes(run, "EXISTS redlock:waiting redlock:queues", 2) == NODES;
    expire_by_hand(run);
    return ends_well(run, REDLOCK_OK) && release(run) && is_in_queue;
}

/*
 * Returns whether the release of the lock leaves the key to anybody for a while, instead of passing
 * it on: by the last digits of the token, 1 release in 128.
 */
static bool is_left_to_anybody(struct run *run) {
    bool is_left = false;

    for (size_t i = 0; i < NODES; i++) {
        char *token = masters_query(run->masters, i, "GET " KEY);
        is_left |= token != NULL && strlen(token) >= 40 && strtoul(token + 38, NULL, 16) < 2;
        free(token);
    }
    return is_left;
}

/* Acquires a lock, without waiting, whose release passes the key on. */
static bool acquire_to_pass_on(struct run *run) {
    redlock_request request = patient_request();

    request.wait_ms = 0;
    while (acquire(run, run->client, &request)) {
        if (!is_left_to_anybody(run)) {
            return true;
        }
        if (!release(run)) {
            return false;
        }
    }
    return false;
}

/*
 * Releases a lock, which was acquired without waiting, while another client waits whose loop does
 * not run: so the key exists only if the release has passed it on.
 */
static bool pass_on(struct run *run, struct run *other) {
    redlock_request request = patient_request();

    if (!acquire_to_pass_on(run) ||
        redlock_acquire(other->client, &request, on_end, other, NULL) != REDLOCK_OK ||
        !is_queued_after(other, run) || !release(run)) {
        return false;
    }
    return is_listener_counted(run) && count_nodes(run, "EXISTS " KEY, 1) > NODES / 2 &&
           count_nodes(run, "EXISTS " QUEUE, 0) > NODES / 2;
}

static bool use_waiting(struct run *run) {
    struct run other = {.masters = run->masters, .base = event_base_new()};

    if (other.base == NULL) {
        die("no loop");
    }
    other.client = connect_to(&other, "", "");
    bool is_good = wait_for_somebody(run, &other) && pass_on(run, &other);
    close_client(&other, other.client);
    event_base_free(other.base);
    return is_good;
}

static const struct feature {
    const char *name; /* in the table */
    bool (*use)(struct run *run);
    const char *path; /* appended to the address in each URI */
} features[] = {
    {"lock", use_lock, ""},
    {"fence", use_fence, ""},
    {"check of a fence", use_check, ""},
    {"inspection", use_inspection, ""},
    {"permits", use_permits, ""},
    {"readers and a writer", use_modes, ""},
    {"wait queues", use_waiting, ""},
    {"watch_key", use_watch, ""},
    {"several keys", use_several, ""},
    {"min_hold_ms, lock_delay_ms", use_stay, ""},
    {"change of nodes", use_change, ""},
    {"wait_replicas", use_replicas, ""},
    {"a database in the URI", use_lock, "/1"},
};

#define FEATURES (sizeof(features) / sizeof(features[0]))

/* ------------------------------------------------------------------------------- the table */

static const struct feature *feature_named(const char *name) {
    for (size_t i = 0; i < FEATURES; i++) {
        if (strcmp(features[i].name, name) == 0) {
            return &features[i];
        }
    }
    return NULL;
}

/*
 * Replaces each bar of the line that is no border of the table, "\\|", by a byte that does not
 * occur.
 */
static void hide_bars(char *line) {
    char *to = line;

    for (const char *from = line; *from != '\0'; from++, to++) {
        bool is_escaped = from[0] == '\\' && from[1] == '|';
        from += is_escaped;
        *to = is_escaped ? HIDDEN_BAR : *from;
    }
    *to = '\0';
}

static void show_bars(char *word) {
    for (char *bar; (bar = strchr(word, HIDDEN_BAR)) != NULL;) {
        *bar = '|';
    }
}

/* Splits a row "| feature | rules | rules |"; false for any other line. */
static bool read_row(char *line, char **name, struct words *rules) {
    char *rest = line + 1;
    char *saved;

    if (line[0] != '|' || line[1] == '-') {
        return false;
    }
    hide_bars(rest);
    *name = strtok_r(rest, "|\n", &saved);
    if (*name == NULL || strlen(*name) < 3) {
        return false;
    }
    ++*name;
    (*name)[strlen(*name) - 1] = '\0';
    rules->count = 0;
    for (char *word; (word = strtok_r(NULL, " |`\n", &saved)) != NULL;) {
        if (rules->count == WORDS_MAX) {
            die("a row of the table is too long");
        }
        show_bars(word);
        rules->word[rules->count++] = word;
    }
    return strcmp(*name, "feature") != 0;
}

/* Grants the user these rights, less rules[without], at all masters. */
static void allow(struct run *run, const struct words *rules, size_t without) {
    for (size_t i = 0; i <= SPARE; i++) {
        for (size_t k = 0; k < rules->count; k++) {
            char *answer = k == without ? NULL
                                        : masters_query(run->masters, i, "ACL SETUSER %s %s", USER,
                                                        rules->word[k]);
            if (answer != NULL && strcmp(answer, "OK") != 0) {
                die(answer);
            }
            free(answer);
        }
    }
}

/* Returns whether the user can use the feature with the rights of both rows, less row[without]. */
static bool can_use(struct run *run, const struct feature *feature, const struct words *first,
                    const struct words *row, size_t without) {
    for (size_t i = 0; i <= SPARE; i++) {
        free(masters_query(run->masters, i, "SCRIPT FLUSH"));
        free(masters_query(run->masters, i, "ACL SETUSER %s reset on >secret resetchannels", USER));
        if (i < NODES || i == SPARE) {
            free(masters_query(run->masters, i,
                               "DEL " KEY " " OTHER_KEY " " KEY ":0 " KEY ":1 " QUEUE));
        }
    }
    if (first != row) {
        allow(run, first, WORDS_MAX);
    }
    allow(run, row, without);
    run->has_all_rights = without == WORDS_MAX;
    run->client = connect_to(run, USER ":secret@", feature->path);
    bool can = feature->use(run);
    close_client(run, run->client);
    return can;
}

static bool check_row(struct run *run, const struct feature *feature, const struct words *first,
                      const struct words *row) {
    bool is_good = can_use(run, feature, first, row, WORDS_MAX);

    if (!is_good) {
        printf("# %s: these rights are not enough\n", feature->name);
    }
    for (size_t i = 0; i < row->count; i++) {
        if (can_use(run, feature, first, row, i)) {
            printf("# %s: %s is not needed\n", feature->name, row->word[i]);
            is_good = false;
        }
    }
    return is_good;
}

static void check_table(struct run *run, FILE *page) {
    char line[1024];
    char first_line[1024] = "";
    struct words first = {.count = 0};
    struct words row;
    char *name;
    size_t count = 0;
    bool is_inside = false;

    while (fgets(line, sizeof(line), page) != NULL) {
        is_inside = is_inside || strncmp(line, "<!-- rights:", 12) == 0;
        if (!is_inside || line[0] != '|') {
            if (is_inside && first.count > 0) {
                break;
            }
            continue;
        }
        if (first.count == 0) {
            memcpy(first_line, line, sizeof(line));
        }
        if (!read_row(first.count == 0 ? first_line : line, &name, &row)) {
            continue;
        }
        if (first.count == 0) {
            first = row;
        }
        const struct feature *feature = feature_named(name);
        bool is_good =
            feature != NULL && check_row(run, feature, &first, count == 0 ? &first : &row);
        printf("%sok %zu - rights: %s\n", is_good ? "" : "not ", ++count, name);
    }
    /* A missing row would be an undocumented right. */
    printf("%sok %zu - rights: a row for each feature\n", count == FEATURES ? "" : "not ",
           count + 1);
    printf("1..%zu\n", count + 1);
}

/* ------------------------------------------------------------------------------- */

static void start_masters(struct run *run) {
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};

    run->base = event_base_new();
    run->masters = masters_start(SPARE + 1, at_once);
    if (run->base == NULL || run->masters == NULL) {
        die("no masters");
    }
    for (size_t i = 0; i < NODES; i++) {
        free(masters_query(run->masters, NODES + i, "REPLICAOF 127.0.0.1 %d",
                           masters_port(run->masters, i)));
    }
}

/* Waits until the replicas follow, and the nodes are trusted in both databases. */
static void wait_until_ready(struct run *run) {
    static const char *const paths[] = {"/1", ""};
    redlock_request request = request_for(KEY);

    request.wait_ms = 1000 * LIMIT_S;
    request.wait_replicas = 1;
    for (size_t i = 0; i < 2; i++) {
        redlock_client *client = connect_to(run, "", paths[i]);
        if (!live(run, (run->client = client, &request))) {
            die("the masters are not trusted, or have no replicas");
        }
        close_client(run, client);
    }
    const char *spare = run->nodes[SPARE];
    redlock_options options = REDLOCK_OPTIONS_INIT;
    options.nodes = &spare;
    options.node_count = 1;
    options.max_ttl_ms = MAX_TTL_MS;
    if (redlock_client_create(run->base, &options, &run->client, NULL) != REDLOCK_OK) {
        die("no client of the spare master");
    }
    request.wait_replicas = 0;
    if (!live(run, &request)) {
        die("the spare master is not trusted");
    }
    close_client(run, run->client);
}

int main(int argc, char **argv) {
    struct run run = {.status = REDLOCK_OK};
    FILE *page = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (page == NULL) {
        fprintf(stderr, "usage: %s PAGE\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_masters(&run);
    wait_until_ready(&run);
    run.admin = connect_to(&run, "", "");
    check_table(&run, page);
    close_client(&run, run.admin);
    event_base_free(run.base);
    masters_finish(run.masters);
    fclose(page);
    return 0;
}
