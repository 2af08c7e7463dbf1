/*
 * Calls and faults in random order: clients acquire, extend, release, cancel and close, while
 * connections are cut, stranded, held and refused, and masters hang.
 *
 * At any time, a client that was notified that it holds a key is the only one whose validity for
 * that key has not ended. In the end the fixture checks that each request had one callback, and
 * that no memory, descriptor or event is left; and no key is left for long.
 *
 * The seeds are fixed; REDLOCK_TEST_SEED adds another. The scheduling of processes is not
 * repeatable.
 */
#include "harness.h"
#include "master_data.h"
#include "proxy.h"

#include <stdlib.h>
#include <string.h>

#define FIVE 5
#define CLIENTS 3
#define KEYS 6
#define SLOTS 24

/* One request or lock of the game; unused when `call` is NULL. */
struct slot {
    struct game *game;
    size_t key;
    redlock_client *client; /* NULL: it is closing */
    struct call *call;      /* the latest acquisition, extension or release */
    redlock_lock *held;
    struct loss *loss;
};

struct game {
    struct fixture *f;
    uint64_t random;
    struct proxy *proxies[FIVE];
    const char *uris[FIVE];
    redlock_client *clients[CLIENTS];
    struct slot slots[SLOTS];
    size_t acquired;
    size_t lost;
};

static const char *const keys[KEYS] = {"key:0", "key:1", "key:2", "key:3", "key:4", "key:5"};

static size_t draw(struct game *game, size_t below) {
    game->random ^= game->random << 13;
    game->random ^= game->random >> 7;
    game->random ^= game->random << 17;
    return (size_t)(game->random % below);
}

/* ----------------------------------------------------------------------------------- invariants */

static void assert_alone(const struct slot *winner) {
    const struct game *game = winner->game;

    for (size_t i = 0; i < SLOTS; i++) {
        const struct slot *slot = &game->slots[i];

        if (slot != winner && slot->key == winner->key && slot->held != NULL &&
            redlock_validity_ms(slot->held) > 0) {
            log_capture_show(&game->f->capture);
            fail_msg("%s is held twice", keys[slot->key]);
        }
    }
}

static void clear(struct slot *slot) {
    slot->call = NULL;
    slot->held = NULL;
    slot->loss = NULL;
}

static void on_acquired(struct call *call, void *arg) {
    struct slot *slot = arg;

    if (call->status != REDLOCK_OK) {
        clear(slot);
        return;
    }
    slot->held = call->lock;
    slot->game->acquired++;
    assert_alone(slot);
}

static void on_released(struct call *call, void *arg) {
    (void)call;
    clear(arg);
}

static void on_lost(struct loss *loss, void *arg) {
    struct slot *slot = arg;

    slot->game->lost++;
    if (loss->status == REDLOCK_ECLOSED) {
        clear(slot); /* the handle ends with its client */
    }
}

/* --------------------------------------------------------------------------- actions of clients */

static void acquire_something(struct game *game, struct slot *slot) {
    redlock_request request = request_for(keys[draw(game, KEYS)], 300 + draw(game, 1500));

    slot->client = game->clients[draw(game, CLIENTS)];
    for (slot->key = 0; keys[slot->key] != request.key; slot->key++) {
    }
    request.watchdog = draw(game, 2) == 0;
    request.wait_ms = draw(game, 3) * 200;
    request.retries = (uint32_t)draw(game, 3);
    slot->loss = watch_loss(game->f, &request);
    slot->loss->then = on_lost;
    slot->loss->then_arg = slot;
    slot->call = begin_acquire(game->f, slot->client, &request);
    slot->call->then = on_acquired;
    slot->call->then_arg = slot;
}

static void release(struct game *game, struct slot *slot) {
    slot->call = begin_release(game->f, slot->held);
    slot->call->then = on_released;
    slot->call->then_arg = slot;
    slot->held = NULL;
}

static void extend_by_chance(struct game *game, struct slot *slot) {
    if (slot->call->ended > 0 && slot->loss->count == 0 && redlock_validity_ms(slot->held) > 50) {
        slot->call = begin_extend(game->f, slot->held, 300 + draw(game, 1500));
    }
}

/*
 * Cancels. The call is refused when the outcome is known and not yet reported, or the request is
 * already canceled.
 */
static void cancel(struct slot *slot) {
    if (redlock_cancel(slot->call->lock) == REDLOCK_OK) {
        slot->call->then = on_released;
    }
}

static void play_client(struct game *game) {
    struct slot *slot = &game->slots[draw(game, SLOTS)];

    if (slot->call == NULL) {
        acquire_something(game, slot);
    } else if (slot->client == NULL) {
        return;
    } else if (slot->held != NULL && draw(game, 2) == 0) {
        release(game, slot);
    } else if (slot->held != NULL) {
        extend_by_chance(game, slot);
    } else if (draw(game, 20) == 0 && strcmp(slot->call->verb, "acquire") == 0) {
        cancel(slot);
    }
}

static void join(struct game *game, size_t index) {
    redlock_options options = patient_options(game->f, game->uris, FIVE);

    options.node_timeout_ms = 20 + draw(game, 200);
    options.stall_timeout_ms = 100 + draw(game, 400);
    game->clients[index] = create_client(game->f, &options);
}

/*
 * Replaces a client, whose locks and requests end with their last callbacks; lost locks have none
 * left.
 */
static void replace_client(struct game *game) {
    size_t index = draw(game, CLIENTS);

    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &game->slots[i];

        if (slot->call == NULL || slot->client != game->clients[index]) {
            continue;
        }
        slot->client = NULL;
        if (slot->held != NULL && slot->loss->count > 0) {
            clear(slot);
        }
    }
    begin_close(game->f, game->clients[index]);
    join(game, index);
}

/* --------------------------------------------------------------------------------------- faults */

static void heal(struct game *game, size_t node) {
    proxy_accept(game->proxies[node]);
    proxy_pass_requests(game->proxies[node]);
    proxy_pass_replies(game->proxies[node]);
    if ((game->f->frozen & (1u << node)) != 0) {
        thaw(game->f, node);
    }
}

static void harm(struct game *game, size_t node) {
    struct proxy *proxy = game->proxies[node];

    switch (draw(game, 8)) {
    case 0:
        proxy_cut(proxy);
        break;
    case 1:
        proxy_hold_requests(proxy, NULL);
        break;
    case 2:
        proxy_hold_requests(proxy, draw(game, 2) == 0 ? "SET" : "EVALSHA");
        break;
    case 3:
        proxy_hold_replies(proxy);
        break;
    case 4:
        proxy_strand(proxy);
        break;
    case 5:
        proxy_refuse(proxy);
        break;
    case 6:
        send_to(game->f, node, node + 1, "SCRIPT FLUSH");
        break;
    default:
        freeze(game->f, node);
    }
}

static void play_nature(struct game *game) {
    size_t node = draw(game, FIVE);
    bool is_frozen = (game->f->frozen & (1u << node)) != 0;

    if (is_frozen || draw(game, 3) > 0) {
        heal(game, node);
    } else {
        harm(game, node);
    }
}

/* ------------------------------------------------------------------------------------- the game */

static void begin(struct game *game, struct fixture *f, uint64_t seed) {
    *game = (struct game){.f = f, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    proxies_create(f, game->proxies, game->uris);
    for (size_t i = 0; i < CLIENTS; i++) {
        join(game, i);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        game->slots[i].game = game;
    }
}

static void end(struct game *game) {
    for (size_t i = 0; i < FIVE; i++) {
        heal(game, i);
    }
    wait_all_ended(game->f, "all requests have ended");
    for (size_t i = 0; i < CLIENTS; i++) {
        close_client(game->f, game->clients[i]);
    }
    for (size_t i = 0; i < KEYS; i++) {
        wait_holders(game->f, keys[i], 0);
    }
}

static void play(struct fixture *f, uint64_t seed) {
    struct game *game = calloc(1, sizeof(*game));
    size_t steps = cycles_here(20000);

    assert_non_null(game);
    at_finish(f, free, game);
    begin(game, f, seed);
    for (size_t i = 0; i < steps; i++) {
        size_t dice = draw(game, 100);

        if (dice < 90) {
            play_client(game);
        } else if (dice < 99 || i % 4 != 0) {
            play_nature(game);
        } else {
            replace_client(game);
        }
        if (draw(game, 2) == 0) {
            run_turns(f, 1);
        }
    }
    end(game);
    assert_true(game->acquired > 0);
    print_message("# seed %llu: %zu acquired, %zu lost\n", (unsigned long long)seed, game->acquired,
                  game->lost);
}

static void with_seed_1(void **state) {
    play(*state, 1);
}

static void with_seed_2(void **state) {
    play(*state, 2);
}

static void with_seed_3(void **state) {
    play(*state, 3);
}

static void with_the_seed_of_the_environment(void **state) {
    const char *seed = getenv("REDLOCK_TEST_SEED");

    if (seed != NULL) {
        play(*state, strtoull(seed, NULL, 10));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(with_seed_1),
        ON_FIVE_MASTERS(with_seed_2),
        ON_FIVE_MASTERS(with_seed_3),
        ON_FIVE_MASTERS(with_the_seed_of_the_environment),
    };

    return cmocka_run_group_tests_name("random_calls", tests, NULL, NULL);
}
