/*
 * Locks keys at several sets of masters, on one loop: see lib/doc/sets.md.
 *
 *     cc -o sets sets.c $(pkg-config --cflags --libs redlock libevent_core libsodium)
 *     ./sets =east redis://10.0.0.1 redis://10.0.0.2 =west redis://10.0.1.1 -- orders:1 orders:2
 *
 * While "+north" is being added or "-west" removed, a key that moves is locked at both of its sets.
 */
#include <event2/event.h>
#include <redlock.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETS 8

static struct set {
    char mark;        /* '=', or '+' or '-' during a change */
    const char *name; /* chooses the keys of the set; its masters may change */
    redlock_options options;
} sets[SETS];
static int set_count, failed, working = 1;   /* working: number of locks, and 1 for main */
static redlock_client *clients[SETS * SETS]; /* by a key's set before and after; made when needed */
static struct event_base *base;

/* Chooses the set of a tag by rendezvous hashing, from those without the mark: the one with the
   largest BLAKE2b-512 of its name, a NUL and the tag. */
static int set_of(const char *tag, size_t length, char mark) {
    unsigned char hash[64], largest[64] = {0};
    crypto_generichash_state state;
    int chosen = 0;
    for (int i = 0; i < set_count; i++) {
        crypto_generichash_init(&state, NULL, 0, sizeof(hash));
        crypto_generichash_update(&state, (const void *)sets[i].name, strlen(sets[i].name) + 1);
        crypto_generichash_update(&state, (const void *)tag, length);
        crypto_generichash_final(&state, hash, sizeof(hash));
        if (sets[i].mark != mark && memcmp(hash, largest, sizeof(hash)) > 0) {
            memcpy(largest, hash, sizeof(hash)), chosen = i;
        }
    }
    return chosen;
}

static void end(redlock_lock *lock, bool is_good) {
    if (!is_good) {
        fprintf(stderr, "%s: %s\n", redlock_key(lock, NULL), redlock_explain(lock));
        failed = 1;
    }
    working--;
    for (int i = 0; working == 0 && i < SETS * SETS; i++) {
        redlock_client_close(clients[i], NULL, NULL); /* then the loop is empty and ends */
    }
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg, end(lock, status != REDLOCK_ELOST); /* lost: another may have worked too */
}

/* Does the work, which is short: it prints the sets. For longer work see pool.c. */
static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    long place = (redlock_client **)arg - clients, before = place / SETS, after = place % SETS;
    if (status == REDLOCK_OK) {
        printf("%s at %s%s%s\n", redlock_key(lock, NULL), sets[before].name,
               before == after ? "" : " and ", before == after ? "" : sets[after].name);
    }
    if (status != REDLOCK_OK || redlock_release(lock, on_released, NULL) != REDLOCK_OK) {
        end(lock, false);
    }
}

/* Requests one lock of the first key and of those that follow with the same tag, the part before
   the first '/'. Returns their number. Each lock of keys that move needs a quorum of both sets. */
static size_t begin(char **keys) {
    size_t tag = strcspn(keys[0], "/"), count = 1;
    int before = set_of(keys[0], tag, '+'), after = set_of(keys[0], tag, '-');
    redlock_client **client = &clients[before * SETS + after];
    const redlock_options *from = &sets[before].options, *to = &sets[after].options;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error;
    while (keys[count] != NULL && strcspn(keys[count], "/") == tag &&
           memcmp(keys[count], keys[0], tag) == 0) {
        count++;
    }
    request.keys = (const char *const *)keys, request.key_count = count, request.wait_ms = 20000;
    if ((*client == NULL &&
         (redlock_client_create(base, from, client, &error) != REDLOCK_OK ||
          (before != after && redlock_client_change_nodes(*client, to->nodes, to->node_count)))) ||
        redlock_acquire(*client, &request, on_acquired, client, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s: %s\n", keys[0],
                *client == NULL ? error.message : redlock_client_error(*client));
        exit(2); /* the loop has not run yet, so nothing is locked */
    }
    return working++, count;
}

int main(int argc, char **argv) {
    char **arg = argv + 1;
    for (; arg < argv + argc && strcmp(*arg, "--") != 0 && set_count < SETS; arg++) {
        if (strchr("=+-", **arg) != NULL) {
            sets[set_count] = (struct set){**arg, *arg + 1, REDLOCK_OPTIONS_INIT};
            sets[set_count++].options.nodes = (const char *const *)arg + 1;
        } else if (set_count > 0) {
            sets[set_count - 1].options.node_count++;
        }
    }
    if (set_count == 0 || arg >= argv + argc || strcmp(*arg, "--") != 0 ||
        (base = event_base_new()) == NULL) {
        fputs("usage: sets =NAME NODE... [=NAME NODE...]... -- KEY...\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* also into a pipe */
    for (arg++; *arg != NULL; arg += begin(arg)) {
    }
    end(NULL, true);
    event_base_dispatch(base);
    event_base_free(base);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
