/*
 * Of all processes that run this program, one leads and does items of work, one after the other. On
 * SIGTERM it hands over; if it dies or hangs, another takes over. No item is lost or done twice.
 *
 *     cc -o leader leader.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./leader JOURNAL redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * The lock ensures that one process leads. The journal ensures that a leader that hung, and does
 * not yet know that another leads, changes nothing: it refuses fences below its last one. Its lines
 * are "FENCE ITEMS-DONE"; the file and flock() stand for a database and its transactions.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

static redlock_client *client;
static redlock_lock *held; /* NULL: another leads */
static struct event *work, *termination;
static const char *journal;
static uint64_t done; /* number of items done, as far as this leader knows */
static bool is_ending;

/* Ends like a crash: does nothing more, and the lock expires with its TTL. A service manager
   restarts the process, which then queues as the last. */
static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(EXIT_FAILURE);
}

/* Records the completed item, in one transaction that refuses earlier leaders, and begins the next
   item, for which a timer stands here. */
static void go_on(evutil_socket_t fd, short what, void *arg) {
    FILE *file = fopen(journal, "a+e");
    redlock_gate gate = REDLOCK_GATE_INIT;
    uint64_t last = 0;

    (void)fd, (void)arg;
    if (file == NULL || flock(fileno(file), LOCK_EX) != 0) {
        give_up("cannot open the journal");
    }
    while (fscanf(file, "%" SCNu64 " %" SCNu64 "\n", &gate.fence, &last) == 2) {
    }
    if (!redlock_gate_admit(&gate, redlock_fence(held))) {
        give_up("refused: another has led since");
    }
    done = what == EV_TIMEOUT ? done + 1 : last; /* not the timer: this process starts to lead */
    fprintf(file, "%" PRIu64 " %" PRIu64 "\n", gate.fence, done);
    if (fflush(file) != 0 || fclose(file) != 0) { /* fclose also ends flock() */
        give_up("cannot write the journal");
    }
    if (is_ending) { /* between two items: the journal has all that this leader has done */
        redlock_release(held, NULL, NULL);
        redlock_client_close(client, NULL, NULL); /* then the loop is empty and ends */
    } else if (event_add(work, &(struct timeval){.tv_usec = 20000}) != 0) {
        give_up("cannot add a timer");
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)status, (void)arg;
    give_up(redlock_explain(lock)); /* in the middle of an item, which another process will do */
}

/* Records at once that this process leads, which locks out all earlier leaders: otherwise one that
   wakes up later could finish an item that this process has read as not done. */
static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg;
    if (status == REDLOCK_OK) {
        held = lock;
        fputs("leads\n", stderr);
        go_on(-1, 0, NULL);
    } else if (status != REDLOCK_ECLOSED) {
        give_up(redlock_explain(lock));
    }
}

static void on_termination(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    event_del(termination); /* a second SIGTERM ends the process at once */
    is_ending = true;
    if (held == NULL) {
        redlock_client_close(client, NULL, NULL); /* leaves the queue */
    }
}

int main(int argc, char **argv) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error;
    struct event_base *base;

    if (argc < 3 || (base = event_base_new()) == NULL ||
        (work = evtimer_new(base, go_on, NULL)) == NULL ||
        (termination = evsignal_new(base, SIGTERM, on_termination, NULL)) == NULL ||
        event_add(termination, NULL) != 0) {
        give_up("usage: leader JOURNAL NODE...");
    }
    journal = argv[1];
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    request.key = "leader";
    request.ttl_ms = 3000; /* maximum time after a crash until another takes over */
    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = request.fenced = true;
    request.on_lost = on_lost;
    if (redlock_client_create(base, &options, &client, &error) != REDLOCK_OK ||
        redlock_acquire(client, &request, on_acquired, NULL, NULL) != REDLOCK_OK) {
        give_up(client == NULL ? error.message : redlock_client_error(client));
    }
    event_base_dispatch(base);
    event_free(work), event_free(termination), event_base_free(base);
    return EXIT_SUCCESS;
}
