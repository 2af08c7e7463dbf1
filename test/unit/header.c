/*
 * Uses only the public header, as C99 to C23 and as C++11 to C++20: both initialisers, an
 * enumerator of each enum, each callback's type. Compiled with warnings as errors; the output is
 * not used.
 */
#ifdef FIRST
#include FIRST /* a header that redlock.h includes */
#endif
#include <redlock.h>

static int calls;

static void on_status(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)arg;
    calls += status == REDLOCK_OK;
}

static void on_line(redlock_log_level level, const char *line, void *arg) {
    (void)line;
    (void)arg;
    calls += level == REDLOCK_LOG_INFO;
}

static void on_closed(void *arg) {
    (void)arg;
    calls++;
}

static int check_options(void) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    const redlock_options constant = REDLOCK_OPTIONS_INIT;
    const char *const nodes[] = {"redis://127.0.0.1"};
    options.nodes = nodes;
    options.node_count = 1;
    options.log = on_line;
    options.log(REDLOCK_LOG_INFO, "", options.log_arg);
    return constant.size == sizeof(options) && options.drift > 0 && options.drift < 1 &&
           options.log_level == REDLOCK_LOG_INFO && options.allocator == NULL;
}

/* Checks each default by its name: in old C++ the initialisers are positional. */
static int check_defaults_of_options(void) {
    const redlock_options is = REDLOCK_OPTIONS_INIT;
    return is.nodes == NULL && is.node_count == 0 && is.node_timeout_ms == 0 &&
           is.stall_timeout_ms == 0 && is.max_ttl_ms == 30000 && is.drift * 1000 > 9.9 &&
           is.drift * 1000 < 10.1 && is.retry_delay_ms == 200 && is.retry_delay_max_ms == 200 &&
           is.reconnect_delay_ms == 50 && is.reconnect_delay_max_ms == 2000 &&
           is.max_commands == 65536 && is.max_bytes == 16777216 && is.name[0] == 'r' &&
           is.log == NULL && is.log_arg == NULL && is.guards == REDLOCK_GUARDS_ON &&
           is.tls_ca_file == NULL && is.tls_ca_path == NULL && is.tls_cert_file == NULL &&
           is.tls_key_file == NULL && is.fence_idle_ms == 604800000 && is.owner == NULL &&
           is.close_timeout_ms == 5000 && is.handover == REDLOCK_HANDOVER_PUSH &&
           is.max_local_handoffs == 64 && is.trace == NULL && is.trace_arg == NULL &&
           is.max_unsent == 1048576 && is.idle_close_ms == 0;
}

/* Likewise. */
static int check_defaults_of_request(void) {
    const redlock_request is = REDLOCK_REQUEST_INIT;
    return is.key == NULL && is.key_length == 0 && is.ttl_ms == 10000 && is.wait_ms == 0 &&
           is.retries == 0 && is.min_validity_ms == 0 && !is.watchdog && is.max_hold_ms == 0 &&
           is.on_lost == NULL && is.on_lost_arg == NULL && !is.fenced && is.keys == NULL &&
           is.key_lengths == NULL && is.key_count == 0 && is.min_hold_ms == 0 &&
           is.lock_delay_ms == 0 && is.wait_replicas == 0 && is.permits == 0 &&
           is.mode == REDLOCK_EXCLUSIVE && !is.watch_key;
}

static int check_request(void) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_cb *callback = on_status;
    redlock_closed_cb *closed = on_closed;
    request.wait_ms = REDLOCK_FOREVER;
    request.on_lost = callback;
    request.on_lost(NULL, REDLOCK_OK, request.on_lost_arg);
    closed(NULL);
    return request.size == sizeof(request) && request.ttl_ms == 10000 && !request.watchdog;
}

/* Calls each function, so that linking checks the library's names, in C++ too. */
static int check_calls(void) {
    redlock_client *client = NULL;
    redlock_error error;
    redlock_node_report report = {"", REDLOCK_VOTE_NONE, 0, ""};
    redlock_gate gate = REDLOCK_GATE_INIT;
    redlock_node_info info = {"", false, "", 0, 0, 0, 0, true, "", 0, false, false};
    return redlock_client_create(NULL, NULL, &client, &error) == REDLOCK_EINVAL && client == NULL &&
           error.status == REDLOCK_EINVAL && redlock_validity_ms(NULL) == 0 &&
           report.vote == REDLOCK_VOTE_NONE && !info.connected && redlock_gate_admit(&gate, 2) &&
           !redlock_gate_admit(&gate, 1) && redlock_fence(NULL) == 0 &&
           redlock_inspect(NULL, "", 0, NULL, NULL) == REDLOCK_EINVAL &&
           redlock_check_fence(NULL, "", 0, 0, NULL, NULL) == REDLOCK_EINVAL &&
           redlock_strerror(REDLOCK_EHELD) != NULL;
}

int main(void) {
    return check_options() && check_defaults_of_options() && check_defaults_of_request() &&
                   check_request() && check_calls() && calls == 3
               ? 0
               : 1;
}
