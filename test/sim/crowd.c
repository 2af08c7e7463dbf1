/*
 * The happy path: crowd_begin requests the first locks, and each callback requests the next one;
 * the library's watchdog renews the locks until crowd_close. A lost lock is released, and not
 * requested again.
 *
 * Being busy inside a callback means being busy in the middle of the library's turn: the crowd
 * acquires an extra lock, and the process stays in that lock's callback.
 */
#include "crowd.h"

#include "check_load.h"

#include <inttypes.h>
#include <stdlib.h>

/* The application's own timer. */
#define TICK (10 * MS)

static struct world *world_of(const struct crowd *crowd) {
    return crowd->process.world;
}

/* ---- locks ---- */

static void on_lost(redlock_lock *handle, redlock_status status, void *arg) {
    struct crowd_lock *lock = arg;
    struct crowd *crowd = lock->crowd;
    crowd->process.work += WORK_OF_CALLBACK;
    if (status == REDLOCK_ECLOSED) {
        return;
    }
    TRACE(world_of(crowd), "process %u lost lock %u: %s", crowd->process.index, lock->index,
          redlock_explain(handle));
    check_load_lost(lock, status);
    crowd->load->lost++;
    crowd->held--;
    lock->state = CROWD_HAS_LOST;
    redlock_release(handle, NULL, NULL);
    lock->lock = NULL;
}

static void ask(struct crowd *crowd, struct crowd_lock *lock, redlock_cb *on_acquired,
                redlock_request *request) {
    const struct load_plan *plan = &crowd->load->plan;
    char key[32];
    snprintf(key, sizeof(key), "crowd%u:%u", crowd->process.index, lock->index);
    request->key = key;
    request->ttl_ms = plan->ttl_ms;
    lock->state = CROWD_ASKS;
    redlock_status status = redlock_acquire(crowd->client, request, on_acquired, lock, &lock->lock);
    if (status != REDLOCK_OK) {
        violate(world_of(crowd), INVARIANT_CALLBACKS, "acquire was refused: %s",
                redlock_client_error(crowd->client));
    }
}

static void ask_for_next(struct crowd *crowd);

static void on_acquired(redlock_lock *handle, redlock_status status, void *arg) {
    struct crowd_lock *lock = arg;
    struct crowd *crowd = lock->crowd;
    crowd->process.work += WORK_OF_CALLBACK;
    if (status == REDLOCK_ECLOSED) {
        return;
    }
    crowd->asking--;
    if (status != REDLOCK_OK) {
        check_load_failed(lock, handle);
        crowd->load->failed++;
        crowd->released++;
        lock->state = CROWD_HAS_FAILED;
        lock->lock = NULL;
        ask_for_next(crowd);
        return;
    }
    check_load_began(lock, handle);
    crowd->load->acquired++;
    if (crowd->load->plan.is_brief) {
        crowd->released++;
        lock->state = CROWD_HAS_RELEASED;
        lock->lock = NULL;
        redlock_release(handle, NULL, NULL);
        return;
    }
    crowd->held++;
    lock->state = CROWD_HOLDS;
    lock->renewal.since = world_of(crowd)->now;
    ask_for_next(crowd);
}

/*
 * Draws how long a request of a burst may wait: mostly for as long as the nodes have no room. Time
 * may be over before the nodes are connected.
 */
static uint64_t draw_wait_ms(const struct crowd *crowd) {
    struct rng *rng = &world_of(crowd)->rng;
    bool is_short = !crowd->load->plan.is_early && rng_chance(rng, 300);
    return is_short ? rng_between(rng, 1, 300) : 0;
}

static void ask_for_next(struct crowd *crowd) {
    const struct load_plan *plan = &crowd->load->plan;
    if (crowd->asked == plan->locks) {
        return;
    }
    struct crowd_lock *lock = &crowd->locks[crowd->asked++];
    crowd->asking++;
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.wait_ms = plan->is_distant ? draw_wait_ms(crowd) : REDLOCK_FOREVER;
    lock->wait = plan->is_distant ? request.wait_ms * MS : 0;
    lock->start_by = lock->wait > 0 ? world_of(crowd)->now + lock->wait : 0;
    request.watchdog = true;
    request.fenced = rng_chance(&world_of(crowd)->rng, plan->fenced);
    request.on_lost = on_lost;
    request.on_lost_arg = lock;
    ask(crowd, lock, on_acquired, &request);
}

static void begin(struct crowd *crowd) {
    const struct load_plan *plan = &crowd->load->plan;
    unsigned window = plan->is_burst ? plan->locks : plan->window;
    for (unsigned i = 0; i < window; i++) {
        ask_for_next(crowd);
    }
    process_excuse(&crowd->process);
}

bool crowd_has_all(const struct crowd *crowd) {
    return crowd->held + crowd->released == crowd->load->plan.locks;
}

unsigned crowd_asks(const struct crowd *crowd) {
    return crowd->contended + crowd->asking;
}

/* ---- contention ---- */

static void on_contended(redlock_lock *handle, redlock_status status, void *arg) {
    struct crowd_lock *lock = arg;
    struct crowd *crowd = lock->crowd;
    crowd->process.work += WORK_OF_CALLBACK;
    if (status == REDLOCK_ECLOSED) {
        return;
    }
    crowd->contended--;
    if (status == REDLOCK_OK) {
        redlock_release(handle, NULL, NULL);
    } else {
        crowd->load->failed++;
        check_load_status(crowd, handle, status);
    }
    lock->state = CROWD_HAS_FAILED;
    lock->lock = NULL;
}

static void contend(struct crowd *crowd) {
    const struct load_plan *plan = &crowd->load->plan;
    for (unsigned i = 0; i < plan->contenders; i++) {
        redlock_request request = REDLOCK_REQUEST_INIT;
        crowd->contended++;
        ask(crowd, &crowd->locks[plan->locks + i], on_contended, &request);
    }
    process_excuse(&crowd->process);
}

bool crowd_contends(const struct crowd *crowd) {
    return crowd->wish == CROWD_CONTEND || crowd->contended > 0;
}

/* ---- busy spells ---- */

static void be_busy(struct crowd *crowd) {
    uint64_t ns = crowd->busy_for;
    crowd->busy_for = 0;
    process_block(&crowd->process, ns);
}

static void on_probed(redlock_lock *handle, redlock_status status, void *arg) {
    struct crowd_lock *lock = arg;
    struct crowd *crowd = lock->crowd;
    lock->state = CROWD_HAS_FAILED;
    lock->lock = NULL;
    crowd->is_probing = false;
    if (status == REDLOCK_ECLOSED) {
        return;
    }
    be_busy(crowd);
    if (status == REDLOCK_OK) {
        redlock_release(handle, NULL, NULL);
    }
}

static void begin_to_be_busy(struct crowd *crowd) {
    const struct load_plan *plan = &crowd->load->plan;
    if (!crowd->is_busy_in_callback) {
        be_busy(crowd);
    } else if (!crowd->is_probing) {
        redlock_request request = REDLOCK_REQUEST_INIT;
        crowd->is_probing = true;
        ask(crowd, &crowd->locks[plan->locks + plan->contenders], on_probed, &request);
    }
}

void crowd_be_busy(struct crowd *crowd, uint64_t ns, bool in_callback) {
    crowd->busy_for = ns;
    crowd->is_busy_in_callback = in_callback;
}

bool crowd_is_busy(const struct crowd *crowd) {
    return crowd->busy_for > 0 || crowd->is_probing;
}

/* ---- its client ---- */

static void on_log(redlock_log_level level, const char *line, void *arg) {
    const struct crowd *crowd = arg;
    (void)level;
    TRACE(world_of(crowd), "process %u: %s", crowd->process.index, line);
}

static void make_client(struct crowd *crowd) {
    const struct load_plan *plan = &crowd->load->plan;
    redlock_options options = plan->options;
    const char *nodes[SERVERS_MAX];
    char uris[SERVERS_MAX][48];
    redlock_error error;
    for (unsigned i = 0; i < plan->nodes; i++) {
        /* Servers restart with their data: a young node would not renew anything. */
        snprintf(uris[i], sizeof(uris[i]), "redis://10.0.0.1:%u?durable=yes", 7000 + i);
        nodes[i] = uris[i];
    }
    options.nodes = nodes;
    options.node_count = plan->nodes;
    options.allocator = &crowd->process.allocator;
    options.log = on_log;
    options.log_arg = crowd;
    options.log_level = world_of(crowd)->trace != NULL ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_ERROR;
    running = &crowd->process;
    if (redlock_client_create(&crowd->process, &options, &crowd->client, &error) != REDLOCK_OK) {
        violate(world_of(crowd), INVARIANT_CALLBACKS, "no client could be made: %s", error.message);
    }
    running = NULL;
}

static void on_closed(void *arg) {
    struct crowd *crowd = arg;
    TRACE(world_of(crowd), "process %u has closed its client", crowd->process.index);
    crowd->is_closed = true;
    check_load_closed(crowd);
}

static void close_client(struct crowd *crowd) {
    TRACE(world_of(crowd), "process %u closes its client", crowd->process.index);
    crowd->closing_at = world_of(crowd)->now;
    redlock_client_close(crowd->client, on_closed, crowd);
}

/* ---- its own timer ---- */

void crowd_wish(struct crowd *crowd, enum crowd_wish wish) {
    crowd->wish = wish;
}

static void set_tick(struct crowd *crowd) {
    crowd->tick_due = world_of(crowd)->now + TICK;
    alarm_set(&crowd->tick, crowd->tick_due);
}

static void on_tick(void *owner) {
    static void (*const steps[])(struct crowd * crowd) = {
        [CROWD_BEGIN] = begin, [CROWD_CONTEND] = contend, [CROWD_CLOSE] = close_client};
    struct crowd *crowd = owner;
    check_load_tick(crowd, crowd->tick_due);
    if (crowd->wish != CROWD_HOLD) {
        enum crowd_wish wish = crowd->wish;
        crowd->wish = CROWD_HOLD;
        steps[wish](crowd);
    }
    if (crowd->busy_for > 0) {
        begin_to_be_busy(crowd);
    }
    if (!crowd->is_closed) {
        set_tick(crowd);
    }
}

/* ---- lifetime ---- */

void crowd_init(struct crowd *crowd, struct load_world *load, unsigned index) {
    const struct load_plan *plan = &load->plan;
    unsigned count = plan->locks + plan->contenders + 1;
    *crowd = (struct crowd){.load = load};
    process_init(&crowd->process, &load->world, index);
    crowd->process.network = &load->network;
    crowd->process.on_check = check_load_process;
    crowd->process.cost = plan->cost;
    crowd->tenth = load->world.now / (100 * MS);
    crowd->locks = calloc(count, sizeof(*crowd->locks));
    if (crowd->locks == NULL) {
        abort();
    }
    for (unsigned i = 0; i < count; i++) {
        crowd->locks[i].crowd = crowd;
        crowd->locks[i].index = i;
    }
    alarm_init(&crowd->tick, &crowd->process, on_tick, crowd);
    make_client(crowd);
    set_tick(crowd);
}

void crowd_finish(struct crowd *crowd) {
    network_bury(&crowd->load->network, &crowd->process);
    process_finish(&crowd->process);
    free(crowd->locks);
}
