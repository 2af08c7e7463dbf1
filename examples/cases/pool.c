/*
 * Does thousands of jobs, each under the lock of its customer, at most AT_ONCE at a time.
 *
 *     cc -o pool pool.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./pool JOBS redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * Waiting requests need no thread, but memory, also at the masters: so the pool has a bound.
 */
#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

#define CUSTOMERS 100
#define AT_ONCE 200

struct worker {
    long job;
    bool is_done;
    redlock_lock *lock;
    struct event *work; /* timer that stands for the job's work */
};

static struct event_base *base;
static redlock_client *client;
static long jobs, next_job, done, failed, working, most; /* numbers of jobs */

static void begin(struct worker *worker);

/* Counts a job and begins another. A release that too few masters answer is not a loss. */
static void on_ended(redlock_lock *lock, redlock_status status, void *arg) {
    struct worker *worker = arg;

    if (worker->is_done && status != REDLOCK_ELOST) {
        done++;
    } else {
        fprintf(stderr, "job %ld: %s\n", worker->job, redlock_explain(lock));
        failed++;
    }
    working--;
    begin(worker);
}

static void on_work_done(evutil_socket_t fd, short what, void *arg) {
    struct worker *worker = arg;

    (void)fd, (void)what;
    worker->is_done = redlock_validity_ms(worker->lock) > 0; /* nobody else had the customer */
    redlock_release(worker->lock, on_ended, worker);
}

/* Stops the work at once; the release then ends with the loss. */
static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)status;
    event_del(((struct worker *)arg)->work);
    redlock_release(lock, on_ended, arg);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct worker *worker = arg;

    worker->lock = lock;
    if (status != REDLOCK_OK) {
        on_ended(lock, status, worker);
    } else if (event_add(worker->work, &(struct timeval){.tv_usec = 1000}) != 0) {
        exit(EXIT_FAILURE); /* out of memory: the locks expire with their TTL */
    }
}

static void begin(struct worker *worker) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    char key[32];
    if (next_job < jobs) {
        worker->job = next_job++, worker->is_done = false;
        snprintf(key, sizeof(key), "customer:%ld", worker->job % CUSTOMERS);
        request.key = key;
        request.wait_ms = 20000;
        request.watchdog = true;
        request.on_lost = on_lost;
        request.on_lost_arg = worker;
        if (redlock_acquire(client, &request, on_acquired, worker, NULL) != REDLOCK_OK) {
            fprintf(stderr, "%s\n", redlock_client_error(client));
            failed += jobs - worker->job, next_job = jobs; /* out of memory: skip the rest */
        } else if (++working > most) {
            most = working;
        }
    }
    if (working == 0 && next_job == jobs) {
        redlock_client_close(client, NULL, NULL); /* then the loop is empty and ends */
    }
}

int main(int argc, char **argv) {
    static struct worker workers[AT_ONCE];
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: pool JOBS NODE..."};

    jobs = argc < 3 ? 0 : strtol(argv[1], NULL, 10);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (jobs < 1 || (base = event_base_new()) == NULL ||
        redlock_client_create(base, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    for (int i = 0; i < AT_ONCE; i++) {
        if ((workers[i].work = evtimer_new(base, on_work_done, &workers[i])) == NULL) {
            return EXIT_FAILURE;
        }
        begin(&workers[i]);
    }
    event_base_dispatch(base);
    printf("%ld done, %ld failed, at most %ld at once\n", done, failed, most);
    for (int i = 0; i < AT_ONCE; i++) {
        event_free(workers[i].work);
    }
    event_base_free(base);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
