/*
 * Moves all files of one folder, except hidden ones, into another, with both folders locked:
 * programs that lock a folder find all of these files there, or none.
 *
 *     cc -o several several.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./several FROM TO redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * Both keys are one lock: programs that name two folders in opposite orders never wait for each
 * other with half of their keys. (If a run dies half-way, the next one moves the rest.)
 */
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP 10 /* files moved before the loop, with its renewals, gets a turn */

static redlock_client *client;
static redlock_lock *held;
static struct event *work;
static DIR *from, *to;
static long moved;
static int has_failed;

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg;
    if (status == REDLOCK_ELOST) {
        fprintf(stderr, "another may have seen the folders: %s\n", redlock_explain(lock));
        has_failed = 1;
    }
    redlock_client_close(client, NULL, NULL); /* then the loop is empty and ends */
}

/* Moves some files. Long work is split into steps, because a busy loop cannot renew the lock. */
static void on_step(evutil_socket_t fd, short what, void *arg) {
    struct dirent *entry = NULL;
    int count = 0;

    (void)fd, (void)what, (void)arg;
    if (redlock_validity_ms(held) == 0) {
        return; /* the process was stopped for a while: on_lost will follow */
    }
    while (count < STEP && (errno = 0, entry = readdir(from)) != NULL) {
        if (entry->d_name[0] != '.') {
            if (renameat(dirfd(from), entry->d_name, dirfd(to), entry->d_name) != 0) {
                perror(entry->d_name);
                has_failed = 1;
                break;
            }
            moved++, count++;
        }
    }
    if (entry == NULL && errno != 0) {
        perror("readdir");
        has_failed = 1;
    }
    if (count < STEP || (has_failed = event_add(work, &(struct timeval){0}) != 0)) {
        redlock_release(held, on_released, NULL);
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)status, (void)arg;
    event_del(work); /* another client may now hold the folders */
    has_failed = 1;
    redlock_release(lock, on_released, NULL);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    size_t length;

    (void)arg;
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_explain(lock));
        has_failed = 1;
        redlock_client_close(client, NULL, NULL);
        return;
    }
    held = lock;
    for (size_t i = 0; redlock_key_at(lock, i, &length) != NULL; i++) {
        printf("locked %s\n", redlock_key_at(lock, i, &length));
    }
    on_step(-1, 0, NULL);
}

int main(int argc, char **argv) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct event_base *base;
    redlock_error error;

    if (argc < 4 || (from = opendir(argv[1])) == NULL || (to = opendir(argv[2])) == NULL ||
        (base = event_base_new()) == NULL || (work = evtimer_new(base, on_step, NULL)) == NULL) {
        fputs("usage: several FROM TO NODE..., with two folders\n", stderr);
        return 2;
    }
    options.nodes = (const char *const *)argv + 3;
    options.node_count = (size_t)argc - 3;
    request.keys = (const char *const *)argv + 1; /* programs must agree on these names */
    request.key_count = 2;
    request.wait_ms = 60000;
    request.watchdog = true;
    request.on_lost = on_lost;
    if (redlock_client_create(base, &options, &client, &error) != REDLOCK_OK ||
        redlock_acquire(client, &request, on_acquired, NULL, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", client == NULL ? error.message : redlock_client_error(client));
        return 2;
    }
    event_base_dispatch(base);
    printf("moved %ld files\n", moved);
    event_free(work), event_base_free(base);
    closedir(from), closedir(to);
    return has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
