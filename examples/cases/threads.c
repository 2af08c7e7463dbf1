/*
 * Does jobs on several cores: each thread has its own loop, its own client and its own keys.
 *
 *     cc -pthread -o threads threads.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./threads redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3 <FILE-OF-KEYS
 *
 * A thread shares nothing but a pair of sockets with main, so there is no mutex. Jobs for one key
 * queue inside one client; those of two clients would meet only at the masters.
 */
#include <event2/event.h>
#include <pthread.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 4
#define AT_ONCE 100 /* jobs of one thread; further ones stay in the socket, then with main */

struct thread {
    pthread_t id;
    int jobs[2]; /* main's socket and the thread's */
    redlock_client *client;
    struct event *input; /* pending while there is room for a job */
    int working;         /* number of jobs, plus 1 until main has no more */
    long done;           /* number of jobs */
};

static redlock_options options = REDLOCK_OPTIONS_INIT; /* read-only once there are threads */

static void leave(struct thread *thread) {
    if (thread->working-- == AT_ONCE) {
        event_add(thread->input, NULL);
    } else if (thread->working == 0) {
        redlock_client_close(thread->client, NULL, NULL); /* then the loop is empty and ends */
    }
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock, ((struct thread *)arg)->done += status != REDLOCK_ELOST;
    leave(arg);
}

/* Does the work, which is short; for longer work see pool.c. */
static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    if (status != REDLOCK_OK || redlock_release(lock, on_released, arg) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_explain(lock));
        leave(arg);
    }
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct thread *thread = arg;
    char key[256];
    ssize_t length = what == EV_READ ? recv(fd, key, sizeof(key), 0) : 0;

    if (length > 0) {
        request.key = key;
        request.key_length = (size_t)length;
        request.wait_ms = 60000;
        if (++thread->working < AT_ONCE) {
            event_add(thread->input, NULL);
        }
        if (redlock_acquire(thread->client, &request, on_acquired, thread, NULL) == REDLOCK_OK) {
            return;
        }
        fprintf(stderr, "%s\n", redlock_client_error(thread->client));
    }
    leave(thread); /* a refused job, or main has closed its end */
}

static void *run(void *arg) {
    struct event_base *base = event_base_new();
    struct thread *thread = arg;
    redlock_error error = {.message = "no memory"};

    if (base == NULL ||
        (thread->input = event_new(base, thread->jobs[1], EV_READ, on_input, thread)) == NULL ||
        event_add(thread->input, NULL) != 0 ||
        redlock_client_create(base, &options, &thread->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message), exit(2);
    }
    event_base_dispatch(base);
    event_free(thread->input), event_base_free(base);
    return NULL;
}

int main(int argc, char **argv) {
    struct thread threads[THREADS] = {0};
    long jobs = 0, done = 0;
    char key[257];

    options.nodes = (const char *const *)argv + 1;
    options.node_count = (size_t)argc - 1;
    for (int i = 0; i < THREADS; i++) {
        threads[i].working = 1;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, threads[i].jobs) != 0 ||
            pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0) {
            perror("threads"), exit(2);
        }
    }
    for (; scanf("%256s", key) == 1; jobs++) {
        size_t length = 0, hash = 0;
        while (key[length] != '\0') {
            hash = hash * 31 + (unsigned char)key[length++];
        }
        if (length > 255 || send(threads[hash % THREADS].jobs[0], key, length, 0) < 0) {
            fprintf(stderr, "%s: longer than 255 bytes, or not sent\n", key), exit(2);
        } /* blocks while the socket is full */
    }
    for (int i = 0; i < THREADS; i++) {
        close(threads[i].jobs[0]), pthread_join(threads[i].id, NULL), close(threads[i].jobs[1]);
        done += threads[i].done;
    }
    printf("%ld of %ld jobs done\n", done, jobs);
    return done == jobs ? EXIT_SUCCESS : EXIT_FAILURE;
}
