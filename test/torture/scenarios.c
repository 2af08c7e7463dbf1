#include "scenarios.h"

#include <string.h>

/* Keys live for so long where expiry is not the point, and where it is. */
#define LONG_TTL 20000
#define SHORT_TTL 60

/* ---- what many have in common ---- */

static struct record *ask(struct rig *rig, const char *key) {
    redlock_request request = rig_request(key, LONG_TTL);
    return rig_acquire(rig, &request);
}

static struct record *hold(struct rig *rig, const char *key) {
    struct record *record = ask(rig, key);
    rig_await(rig, record);
    return record;
}

static struct record *hold_for(struct rig *rig, const redlock_request *request) {
    struct record *record = rig_acquire(rig, request);
    rig_await(rig, record);
    return record;
}

static void let_go(struct rig *rig, struct record *held) {
    rig_await(rig, rig_release(rig, held));
}

static bool start(struct rig *rig) {
    if (!rig_create(rig)) {
        return false;
    }
    rig_connect(rig);
    return true;
}

static void rival_holds(struct rig *rig, unsigned servers, const char *key) {
    for (unsigned i = 0; i < servers; i++) {
        server_set(&rig->servers[i], key, "rival");
    }
}

static void for_servers(struct rig *rig, unsigned count, const char *error, bool is_silent) {
    for (unsigned i = 0; i < count; i++) {
        rig->servers[i].error = error;
        rig->servers[i].is_silent = is_silent;
    }
}

/* ---- clients ---- */

static void create(struct rig *rig) {
    rig_create(rig);
}

static void create_and_close(struct rig *rig) {
    if (rig_create(rig)) {
        rig_await(rig, rig_close(rig));
    }
}

static void connect_and_close(struct rig *rig) {
    if (start(rig)) {
        rig_await(rig, rig_close(rig));
    }
}

static void without_name(struct rig *rig) {
    rig->options.name = NULL;
    if (start(rig)) {
        let_go(rig, hold(rig, "k"));
    }
}

static void on_log(redlock_log_level level, const char *line, void *arg) {
    (void)level;
    if (line[0] == '\0') {
        rig_complain(arg, "an empty line of the log");
    }
}

static void with_log(struct rig *rig) {
    rig->options.log = on_log;
    rig->options.log_arg = rig;
    rig->options.log_level = REDLOCK_LOG_DEBUG;
    if (start(rig)) {
        let_go(rig, hold(rig, "k"));
        let_go(rig, hold(rig, "k"));
    }
}

static void log_in(struct rig *rig) {
    char uri[160];
    snprintf(uri, sizeof(uri), "unix://me:secret@%s?db=3", rig->servers[0].path);
    rig->nodes[0] = uri;
    if (start(rig)) {
        let_go(rig, hold(rig, "k"));
    }
    rig->nodes[0] = rig->servers[0].uri;
}

/* Names, one of which cannot be; closed while they are looked up. */
static void look_up_names(struct rig *rig) {
    rig->nodes[0] = "redis://localhost:1";
    rig->nodes[1] = "redis://redlock-torture.invalid:1";
    if (rig_create(rig)) {
        rig_await(rig, ask(rig, "k"));
        rig_await(rig, rig_close(rig));
    }
}

static void refuse_connections(struct rig *rig) {
    rig->nodes[0] = "redis://127.0.0.1:1";
    rig->nodes[1] = "unix:///nonexistent/redlock";
    if (rig_create(rig)) {
        let_go(rig, hold(rig, "k"));
    }
}

static void two_clients(struct rig *rig) {
    if (!start(rig)) {
        return;
    }
    redlock_client *first = rig->client;
    redlock_client *second = NULL;
    redlock_error error;
    rig->is_calling = true;
    redlock_client_create(rig->base, &rig->options, &second, &error);
    redlock_client_close(second, NULL, NULL);
    rig->is_calling = false;
    rig->client = first;
    let_go(rig, hold(rig, "k"));
}

/* ---- acquiring ---- */

static void acquire_and_release(struct rig *rig) {
    if (start(rig)) {
        let_go(rig, hold(rig, "k"));
        let_go(rig, hold(rig, "k"));
    }
}

static void acquire_at_once(struct rig *rig) {
    if (rig_create(rig)) {
        let_go(rig, hold(rig, "k"));
    }
}

static void long_key(struct rig *rig) {
    static char key[400];
    memset(key, 'k', sizeof(key) - 1);
    if (start(rig)) {
        let_go(rig, hold(rig, key));
    }
}

static void longest_key(struct rig *rig) {
    static char key[60000];
    memset(key, 'k', sizeof(key) - 1);
    if (start(rig)) {
        for_servers(rig, rig->server_count, "OOM command not allowed", false);
        rig_await(rig, ask(rig, key));
    }
}

static void denied(struct rig *rig) {
    rival_holds(rig, rig->server_count, "k");
    if (start(rig)) {
        rig_await(rig, ask(rig, "k"));
    }
}

/* Some grant it, some deny it: what was granted is released, and who denied is asked why. */
static void denied_by_some(struct rig *rig) {
    rival_holds(rig, rig->server_count / 2 + 1, "k");
    if (start(rig)) {
        rig_await(rig, ask(rig, "k"));
    }
}

static void denied_and_retried(struct rig *rig) {
    rival_holds(rig, rig->server_count / 2 + 1, "k");
    redlock_request request = rig_request("k", LONG_TTL);
    request.retries = 3;
    if (start(rig)) {
        rig_await(rig, rig_acquire(rig, &request));
    }
}

static void freed_while_waiting(struct rig *rig) {
    rival_holds(rig, rig->server_count, "k");
    redlock_request request = rig_request("k", LONG_TTL);
    request.wait_ms = 5000;
    if (!start(rig)) {
        return;
    }
    struct record *record = rig_acquire(rig, &request);
    for (unsigned i = 0; i < rig->server_count; i++) {
        server_delete(&rig->servers[i], "k");
    }
    rig_await(rig, record);
    let_go(rig, record);
}

static void errors_of_all(struct rig *rig) {
    if (start(rig)) {
        for_servers(rig, rig->server_count, "OOM command not allowed", false);
        rig_await(rig, ask(rig, "k"));
    }
}

static void errors_of_some(struct rig *rig) {
    if (start(rig)) {
        for_servers(rig, rig->server_count / 2, "READONLY no", false);
        let_go(rig, hold(rig, "k"));
    }
}

static void silence_of_all(struct rig *rig) {
    if (start(rig)) {
        for_servers(rig, rig->server_count, NULL, true);
        rig_await(rig, ask(rig, "k"));
    }
}

static void silence_of_some(struct rig *rig) {
    if (start(rig)) {
        for_servers(rig, rig->server_count / 2, NULL, true);
        let_go(rig, hold(rig, "k"));
    }
}

/* ---- canceling and closing ---- */

static void cancel_at_once(struct rig *rig) {
    if (start(rig)) {
        struct record *record = ask(rig, "k");
        rig_cancel(rig, record);
        rig_await(rig, record);
    }
}

static void cancel_under_way(struct rig *rig) {
    if (start(rig)) {
        for_servers(rig, rig->server_count, NULL, true);
        struct record *record = ask(rig, "k");
        event_base_loop(rig->base, EVLOOP_ONCE);
        rig_cancel(rig, record);
        rig_await(rig, record);
    }
}

static void cancel_between_tries(struct rig *rig) {
    rival_holds(rig, rig->server_count / 2 + 1, "k");
    redlock_request request = rig_request("k", LONG_TTL);
    request.wait_ms = REDLOCK_FOREVER;
    if (start(rig)) {
        struct record *record = rig_acquire(rig, &request);
        for (unsigned i = 0; i < 5; i++) {
            event_base_loop(rig->base, EVLOOP_ONCE);
        }
        rig_cancel(rig, record);
        rig_await(rig, record);
    }
}

static void close_while_acquiring(struct rig *rig) {
    if (start(rig)) {
        ask(rig, "a");
        ask(rig, "b");
        rig_await(rig, rig_close(rig));
    }
}

static void close_while_holding(struct rig *rig) {
    if (start(rig)) {
        hold(rig, "a");
        hold(rig, "b");
        rig_await(rig, rig_close(rig));
    }
}

static void close_while_releasing(struct rig *rig) {
    if (start(rig)) {
        rig_release(rig, hold(rig, "a"));
        rig_await(rig, rig_close(rig));
    }
}

static void close_while_extending(struct rig *rig) {
    if (start(rig)) {
        rig_extend(rig, hold(rig, "a"), 0);
        rig_await(rig, rig_close(rig));
    }
}

/* ---- inside callbacks ---- */

static void then_close(struct rig *rig, struct record *record) {
    (void)record;
    rig_close(rig);
}

static void close_inside(struct rig *rig) {
    if (start(rig)) {
        ask(rig, "a")->then = then_close;
        ask(rig, "b");
        rig_await_all(rig);
    }
}

static void then_release(struct rig *rig, struct record *record) {
    record->answer = REDLOCK_OK;
    rig_release(rig, record);
    ask(rig, "b");
}

static void release_and_acquire_inside(struct rig *rig) {
    if (start(rig)) {
        ask(rig, "a")->then = then_release;
        rig_await_all(rig);
    }
}

static void then_extend_and_close(struct rig *rig, struct record *record) {
    rig_extend(rig, record, 0);
    rig_close(rig);
}

static void extend_and_close_inside(struct rig *rig) {
    if (start(rig)) {
        ask(rig, "a")->then = then_extend_and_close;
        rig_await_all(rig);
    }
}

/* ---- holding ---- */

static void extend(struct rig *rig) {
    if (start(rig)) {
        struct record *record = hold(rig, "k");
        rig_await(rig, rig_extend(rig, record, 0));
        rig_await(rig, rig_extend(rig, record, 30000));
        let_go(rig, record);
    }
}

static void extend_and_release(struct rig *rig) {
    if (start(rig)) {
        struct record *record = hold(rig, "k");
        rig_extend(rig, record, 0);
        let_go(rig, record);
        rig_await_all(rig);
    }
}

static void lose_by_time(struct rig *rig) {
    redlock_request request = rig_request("k", SHORT_TTL);
    if (start(rig)) {
        struct record *record = hold_for(rig, &request);
        rig_await_loss(rig, record);
        let_go(rig, record);
    }
}

static void lose_to_a_rival(struct rig *rig) {
    redlock_request request = rig_request("k", 300);
    request.watchdog = true;
    if (start(rig)) {
        struct record *record = hold_for(rig, &request);
        rival_holds(rig, rig->server_count, "k");
        rig_await_loss(rig, record);
        let_go(rig, record);
    }
}

static bool have_keys(const struct rig *rig) {
    for (unsigned i = 0; i < rig->server_count; i++) {
        if (rig->servers[i].master.key_count == 0) {
            return false;
        }
    }
    return true;
}

/* A node that forgot is given the key again, when a renewal has found that out. */
static void be_topped_up(struct rig *rig) {
    redlock_request request = rig_request("k", 150);
    request.watchdog = true;
    if (start(rig)) {
        struct record *record = hold_for(rig, &request);
        server_delete(&rig->servers[0], "k");
        if (rig_has(record)) {
            rig_wait(rig, have_keys);
        }
        let_go(rig, record);
    }
}

/* ---- servers that come and go ---- */

static void forget_scripts(struct rig *rig) {
    if (start(rig)) {
        struct record *record = hold(rig, "k");
        for (unsigned i = 0; i < rig->server_count; i++) {
            rig->servers[i].master.scripts = 0;
        }
        rig_await(rig, rig_extend(rig, record, 0));
        for (unsigned i = 0; i < rig->server_count; i++) {
            rig->servers[i].master.scripts = 0;
        }
        let_go(rig, record);
    }
}

static void break_connections(struct rig *rig) {
    if (start(rig)) {
        struct record *record = hold(rig, "k");
        for (unsigned i = 0; i < rig->server_count; i++) {
            server_drop(&rig->servers[i]);
        }
        let_go(rig, record);
        rig_connect(rig);
    }
}

static bool owes_nothing(const struct rig *rig) {
    redlock_node_info infos[RIG_SERVERS];
    size_t count = redlock_client_nodes(rig->client, infos, RIG_SERVERS);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].release_debts > 0) {
            return false;
        }
    }
    return true;
}

/* The releases meet errors first, and are sent again. */
static void pay_debts(struct rig *rig) {
    if (start(rig)) {
        struct record *a = hold(rig, "a");
        struct record *b = hold(rig, "b");
        for_servers(rig, rig->server_count, "LOADING", false);
        rig_release(rig, a);
        rig_release(rig, b);
        rig_await_all(rig);
        for_servers(rig, rig->server_count, NULL, false);
        rig_wait(rig, owes_nothing);
    }
}

static void stall(struct rig *rig) {
    if (start(rig)) {
        struct record *record = hold(rig, "k");
        for_servers(rig, rig->server_count, NULL, true);
        let_go(rig, record);
        for_servers(rig, rig->server_count, NULL, false);
        rig_connect(rig);
    }
}

/* ---- many ---- */

static void many_in_a_turn(struct rig *rig) {
    static const char *const keys[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    struct record *records[8];
    if (!start(rig)) {
        return;
    }
    for (unsigned i = 0; i < 8; i++) {
        records[i] = ask(rig, keys[i]);
    }
    rig_await_all(rig);
    for (unsigned i = 0; i < 8; i++) {
        rig_extend(rig, records[i], 0);
    }
    rig_await_all(rig);
    for (unsigned i = 0; i < 8; i++) {
        rig_release(rig, records[i]);
    }
    rig_await_all(rig);
}

#define SCENARIO(servers, name)                                                                    \
    { #name, servers, name }

const struct scenario scenarios[] = {
    SCENARIO(2, create),
    SCENARIO(2, create_and_close),
    SCENARIO(2, connect_and_close),
    SCENARIO(1, without_name),
    SCENARIO(2, with_log),
    SCENARIO(1, log_in),
    SCENARIO(2, look_up_names),
    SCENARIO(5, refuse_connections),
    SCENARIO(1, two_clients),
    SCENARIO(3, acquire_and_release),
    SCENARIO(3, acquire_at_once),
    SCENARIO(1, long_key),
    SCENARIO(2, longest_key),
    SCENARIO(3, denied),
    SCENARIO(3, denied_by_some),
    SCENARIO(3, denied_and_retried),
    SCENARIO(3, freed_while_waiting),
    SCENARIO(3, errors_of_all),
    SCENARIO(3, errors_of_some),
    SCENARIO(2, silence_of_all),
    SCENARIO(3, silence_of_some),
    SCENARIO(3, cancel_at_once),
    SCENARIO(3, cancel_under_way),
    SCENARIO(3, cancel_between_tries),
    SCENARIO(3, close_while_acquiring),
    SCENARIO(3, close_while_holding),
    SCENARIO(3, close_while_releasing),
    SCENARIO(3, close_while_extending),
    SCENARIO(2, close_inside),
    SCENARIO(2, release_and_acquire_inside),
    SCENARIO(2, extend_and_close_inside),
    SCENARIO(3, extend),
    SCENARIO(3, extend_and_release),
    SCENARIO(3, lose_by_time),
    SCENARIO(3, lose_to_a_rival),
    SCENARIO(3, be_topped_up),
    SCENARIO(2, forget_scripts),
    SCENARIO(2, break_connections),
    SCENARIO(2, pay_debts),
    SCENARIO(1, stall),
    SCENARIO(2, many_in_a_turn),
};

const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
