/*
 * An HTTP server that never creates a report twice at the same time, on any number of machines.
 *
 *     cc -o evhttp evhttp.c $(pkg-config --cflags --libs redlock libevent_core libevent_extra)
 *     ./evhttp PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *     curl http://127.0.0.1:PORT/reports/7
 */
#include <event2/event.h>
#include <event2/http.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE 1000 /* maximum number of requests that wait or work */

struct report {
    struct evhttp_request *request; /* owned by us until the reply */
    redlock_lock *lock;
    struct event *work; /* timer that stands for the work */
};

static struct event_base *base;
static struct evhttp *http;
static struct event *termination;
static redlock_client *client; /* NULL: closed */
static int serving;

static void end(struct report *report, int code, const char *reason) {
    evhttp_send_reply(report->request, code, reason, NULL); /* also if the client is gone */
    event_free(report->work);
    free(report), serving--;
}

/* Replies after the release, which reports whether the lock was held to the end. */
static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    end(arg, status == REDLOCK_ELOST ? HTTP_INTERNAL : HTTP_OK, NULL);
}

static void on_work_done(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    redlock_release(((struct report *)arg)->lock, on_released, arg);
}

/* Stops the work. Also called when the client is closed, which releases the lock itself. */
static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)status;
    redlock_release(lock, NULL, NULL);
    end(arg, HTTP_SERVUNAVAIL, "Lost");
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct report *report = arg;

    report->lock = lock;
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_explain(lock));
        end(report, HTTP_SERVUNAVAIL, "Not Locked");
    } else if (event_add(report->work, &(struct timeval){.tv_usec = 50000}) != 0) {
        on_lost(lock, REDLOCK_ENOMEM, report);
    }
}

static void on_request(struct evhttp_request *http_request, void *arg) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct report *report = NULL;

    (void)arg;
    if (client == NULL || serving == AT_ONCE || (report = calloc(1, sizeof(*report))) == NULL ||
        (report->work = evtimer_new(base, on_work_done, report)) == NULL) {
        free(report);
        evhttp_send_reply(http_request, HTTP_SERVUNAVAIL, "Busy", NULL);
        return;
    }
    serving++;
    report->request = http_request;
    request.key = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(http_request));
    request.wait_ms = 5000; /* less than the timeouts of HTTP clients and proxies */
    request.watchdog = true;
    request.on_lost = on_lost;
    request.on_lost_arg = report;
    if (redlock_acquire(client, &request, on_acquired, report, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_client_error(client));
        end(report, HTTP_BADREQUEST, "Not a Key"); /* or the client was closed */
    }
}

static void on_closed(void *arg) {
    (void)arg;
    client = NULL;
    event_base_loopexit(base, &(struct timeval){.tv_usec = 100000}); /* after the last replies */
}

static void on_termination(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    redlock_client_close(client, on_closed, NULL);
}

int main(int argc, char **argv) {
    redlock_error error = {.message = "usage: evhttp PORT NODE..., with a free port"};
    redlock_options options = REDLOCK_OPTIONS_INIT;

    signal(SIGPIPE, SIG_IGN); /* a client that disconnects must not end the server */
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (argc < 3 || (base = event_base_new()) == NULL || (http = evhttp_new(base)) == NULL ||
        (termination = evsignal_new(base, SIGTERM, on_termination, NULL)) == NULL ||
        event_add(termination, NULL) != 0 ||
        evhttp_bind_socket(http, "127.0.0.1", (ev_uint16_t)atoi(argv[1])) != 0 ||
        redlock_client_create(base, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    evhttp_set_gencb(http, on_request, NULL);
    event_base_dispatch(base);
    evhttp_free(http), event_free(termination), event_base_free(base);
    return EXIT_SUCCESS;
}
