/*
 * Pays an amount into an account in a fenced_store: takes a fenced lock, reads the balance, adds
 * the amount, and writes the balance back. Starts over when the store refuses.
 *
 *     fenced_writer [--pause] AMOUNT STORE-PORT ACCOUNT redis://10.0.0.1 redis://10.0.0.2 ...
 *
 * Prints each action on stdout, one line each. With --pause the writer waits for a line on stdin at
 * the worst moment: after it has checked that it holds the lock, and before it writes. The demo
 * stops it there. A process can be stopped between any two of its instructions, so no check in the
 * writer can replace the check in the store.
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE_ADDRESS "127.0.0.1"
#define TTL_MS 2000
#define WAIT_MS 60000
#define MOST_TRIES 20

struct writer {
    long amount;
    const char *account; /* name in the store and key of the lock */
    bool pauses;
    redlock_client *client;
    redlock_lock *lock;
    struct evhttp_connection *store;
    unsigned tries;
    long balance; /* balance read from the store */
    bool is_paid;
    int exit_code;
};

static void begin(struct writer *writer);

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void report(const char *format, ...) {
    va_list values;

    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
}

/* Closes the client, which releases its locks. Then the loop is empty and the program ends. */
static void give_up(struct writer *writer, const char *why) {
    fprintf(stderr, "fenced_writer: %s\n", why);
    redlock_client_close(writer->client, NULL, NULL);
}

/*
 * Ends the program, or starts over after a refusal. A lock that was lost in the meantime is not a
 * failure: the store has checked the fence.
 */
static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct writer *writer = arg;

    (void)lock;
    report("released: %s", redlock_strerror(status));
    if (!writer->is_paid) {
        begin(writer);
        return;
    }
    writer->exit_code = EXIT_SUCCESS;
    redlock_client_close(writer->client, NULL, NULL);
}

static void release(struct writer *writer) {
    redlock_lock *lock = writer->lock;

    writer->lock = NULL;
    if (redlock_release(lock, on_released, writer) != REDLOCK_OK) {
        give_up(writer, redlock_client_error(writer->client));
    }
}

/* ------------------------------------------------------------------------------------ the store */

/* Copies the body without its final newline; "" if there is none. */
static void read_body(struct evhttp_request *reply, char *text, size_t size) {
    ev_ssize_t length = evbuffer_copyout(evhttp_request_get_input_buffer(reply), text, size - 1);

    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
}

typedef void reply_cb(struct evhttp_request *reply, void *arg);

/*
 * Sends a request with the fence to the store: writes *balance, or reads if `balance` is NULL.
 */
static void ask_store(struct writer *writer, const long *balance, reply_cb *on_reply) {
    struct evhttp_request *request = evhttp_request_new(on_reply, writer);
    struct evkeyvalq *headers;
    char fence[32];

    if (request == NULL) {
        give_up(writer, "out of memory");
        return;
    }
    snprintf(fence, sizeof(fence), "%" PRIu64, redlock_fence(writer->lock));
    headers = evhttp_request_get_output_headers(request);
    if (evhttp_add_header(headers, "Host", STORE_ADDRESS) != 0 ||
        evhttp_add_header(headers, "Connection", "close") != 0 ||
        evhttp_add_header(headers, "Fence", fence) != 0 ||
        (balance != NULL &&
         evbuffer_add_printf(evhttp_request_get_output_buffer(request), "%ld", *balance) < 0)) {
        evhttp_request_free(request);
        give_up(writer, "out of memory");
        return;
    }
    if (evhttp_make_request(writer->store, request,
                            balance != NULL ? EVHTTP_REQ_PUT : EVHTTP_REQ_GET,
                            writer->account) != 0) {
        give_up(writer, "cannot ask the store");
    }
}

/*
 * Returns whether the store carried out the request; otherwise the writer starts over or gives up.
 */
static bool is_done(struct writer *writer, struct evhttp_request *reply) {
    int code = reply != NULL ? evhttp_request_get_response_code(reply) : 0;
    char text[256];

    if (code == 200 || (code == 404 && evhttp_request_get_command(reply) == EVHTTP_REQ_GET)) {
        return true;
    }
    if (code == 0) {
        give_up(writer, "the store does not answer");
        return false;
    }
    read_body(reply, text, sizeof(text));
    if (code != 412) {
        give_up(writer, text);
        return false;
    }
    report("refused with %d: %s", code, text);
    release(writer);
    return false;
}

static void on_written(struct evhttp_request *reply, void *arg) {
    struct writer *writer = arg;

    if (!is_done(writer, reply)) {
        return;
    }
    report("wrote %ld", writer->balance + writer->amount);
    writer->is_paid = true;
    release(writer);
}

static void write_balance(struct writer *writer) {
    uint64_t validity_ms = redlock_validity_ms(writer->lock);
    long balance = writer->balance + writer->amount;

    if (validity_ms == 0) {
        report("too late: the lock is over");
        release(writer);
        return;
    }
    report("certain for %" PRIu64 " ms more: may write %ld", validity_ms, balance);
    if (writer->pauses) {
        char line[8];

        if (fgets(line, sizeof(line), stdin) == NULL) {
            give_up(writer, "nobody says to go on");
            return;
        }
    }
    ask_store(writer, &balance, on_written);
}

static void on_read(struct evhttp_request *reply, void *arg) {
    struct writer *writer = arg;
    char text[32];

    if (!is_done(writer, reply)) {
        return;
    }
    read_body(reply, text, sizeof(text));
    writer->balance = strtol(text, NULL, 10); /* a new account holds 0 */
    report("read %ld", writer->balance);
    write_balance(writer);
}

/* ------------------------------------------------------------------------------------- the lock */

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct writer *writer = arg;

    if (status != REDLOCK_OK) {
        give_up(writer, redlock_explain(lock));
        return;
    }
    writer->lock = lock;
    report("acquired with fence %" PRIu64, redlock_fence(lock));
    ask_store(writer, NULL, on_read);
}

static void begin(struct writer *writer) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    if (++writer->tries > MOST_TRIES) {
        give_up(writer, "too many tries failed");
        return;
    }
    request.key = writer->account;
    request.ttl_ms = TTL_MS;
    request.wait_ms = WAIT_MS;
    request.watchdog = true;
    request.fenced = true; /* no on_lost: the store decides whether the lock still counts */
    if (redlock_acquire(writer->client, &request, on_acquired, writer, NULL) != REDLOCK_OK) {
        give_up(writer, redlock_client_error(writer->client));
    }
}

static bool create_client(struct writer *writer, struct event_base *base, char **nodes,
                          size_t count) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    options.nodes = (const char *const *)nodes;
    options.node_count = count;
    options.max_ttl_ms = TTL_MS;
    options.node_timeout_ms = 4000; /* long, because the machine may be busy */
    options.stall_timeout_ms = 30000;
    if (redlock_client_create(base, &options, &writer->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "fenced_writer: %s\n", error.message);
        return false;
    }
    return true;
}

static bool parse_number(const char *text, long most, long *number) {
    char *end;

    *number = strtol(text, &end, 10);
    return end != text && *end == '\0' && *number > 0 && *number <= most;
}

int main(int argc, char **argv) {
    struct writer writer = {.exit_code = EXIT_FAILURE};
    struct event_base *base;
    long port;

    if (argc > 1 && strcmp(argv[1], "--pause") == 0) {
        writer.pauses = true;
        argc--;
        argv++;
    }
    if (argc < 5 || !parse_number(argv[1], 1000000, &writer.amount) ||
        !parse_number(argv[2], UINT16_MAX, &port) || argv[3][0] != '/') {
        fputs("usage: fenced_writer [--pause] AMOUNT STORE-PORT /ACCOUNT NODE...\n", stderr);
        return 2;
    }
    writer.account = argv[3];
    base = event_base_new();
    writer.store =
        base == NULL ? NULL : evhttp_connection_base_new(base, NULL, STORE_ADDRESS, (uint16_t)port);
    if (writer.store == NULL) {
        fputs("fenced_writer: cannot make an event loop\n", stderr);
    } else if (create_client(&writer, base, argv + 4, (size_t)argc - 4)) {
        begin(&writer);
        if (event_base_dispatch(base) < 0) {
            writer.exit_code = EXIT_FAILURE;
        }
    }
    if (writer.store != NULL) {
        evhttp_connection_free(writer.store);
    }
    if (base != NULL) {
        event_base_free(base);
    }
    return writer.exit_code;
}
