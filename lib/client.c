/*
 * The happy path: all work of a client is done in turns of the loop. Replies, timers and the
 * application's calls make locks ready and wake a turn. A turn handles the ready locks, which
 * notifies the application and collects commands; then it sends the collected script calls, and
 * writes to all sockets once. Locks that become ready meanwhile, and those beyond TURN_LOCKS_MAX,
 * wait for the loop's next iteration, so that neither a crowd of locks nor an application that
 * answers every callback with a call keeps the loop from other work.
 *
 * The end: a closing client ends its locks, TURN_LOCKS_MAX in a turn. Then it waits, for at most
 * close_timeout_ms, until all nodes that answer have confirmed their releases. It is freed at the
 * end of a turn, when no function uses it any more, after on_closed has returned: until then the
 * application may use its handles.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "core/options.h"
#include "handle.h"
#include "io/clock.h"
#include "io/fork.h"
#include "io/random.h"
#include "lock/inspect.h"
#include "lock/pushes.h"
#include "lock/turn.h"
#include "node/context.h"
#include "node/members.h"
#include "node/node.h"
#include "ready.h"
#include "round/release.h"
#include "round/rounds.h"
#include "stats.h"

/* The application's callback for the end of the client: one of the two, or none. */
struct close_listener {
    redlock_closed_cb *on_closed;
    redlock_drained_cb *on_drained;
    void *arg;
};

struct redlock_client {
    struct context context;
    struct members members;
    struct rounds rounds;
    struct locks locks;
    struct inspections inspections;
    struct ready ready;
    struct timer heartbeat;      /* fires once a second, or more often (heartbeat_period) */
    struct timer close_deadline; /* fires when a closing client stops waiting for replies */
    uint64_t heartbeat_due;      /* the time for which it was set */
    struct close_listener listener;
};

/* ---- the end ---- */

static void client_free(redlock_client *client) {
    struct context *context = &client->context;
    redlock_allocator allocator = context->allocator;
    members_finish(&client->members);
    timer_finish(&client->heartbeat);
    timer_finish(&client->close_deadline);
    ready_finish(&client->ready);
    locks_finish(&client->locks);
    rounds_finish(&client->rounds);
    context_finish(context);
    memory_free(&allocator, client);
}

/* Ends all commands under way without an answer, and so the locks that wait for them. */
static void on_close_deadline(void *arg) {
    redlock_client *client = arg;
    members_stop(&client->members);
    context_wake(&client->context);
}

/* Returns whether no release is being retried, and no reply is awaited. */
static bool is_drained(const redlock_client *client) {
    uint32_t rest = members_all(&client->members);
    const struct node *node;
    bool is_releasing = false;
    while ((node = members_take(&client->members, &rest)) != NULL) {
        is_releasing |= node_is_releasing(node);
    }
    return !is_releasing && client->rounds.operations.out == 0; /* questions may stay unanswered */
}

/* Returns whether the client is closing and has nothing left to wait for. */
static bool may_end(const redlock_client *client) {
    if (!client->context.is_closing || locks_have_any(&client->locks) ||
        !TAILQ_EMPTY(&client->inspections.all) || ready_has_any(&client->ready)) {
        return false;
    }
    /* The deadline is over, or there is nothing left to wait for. */
    return client->close_deadline.at == NANOS_NEVER || is_drained(client);
}

/* Counts the unconfirmed releases, by node and lock; their keys stay until their TTL is over. */
static uint64_t count_unreleased(const struct members *members) {
    uint64_t now = clock_now();
    uint64_t count = 0;
    uint32_t rest = members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        count += node_unreleased(node, now);
    }
    return count;
}

static void end_client(redlock_client *client) {
    struct context *context = &client->context;
    const struct close_listener listener = client->listener;
    members_stop(&client->members);      /* ends the operations that are still out */
    if (context->resolver.pending > 0) { /* canceled lookups end in the loop's next iterations */
        timer_set(&context->turn, nanos_add(clock_now(), NANOS_PER_MS));
        return;
    }
    context->is_closed = true;
    if (listener.on_closed != NULL) {
        listener.on_closed(listener.arg);
    } else if (listener.on_drained != NULL) {
        listener.on_drained(count_unreleased(&client->members), listener.arg);
    }
    client_free(client);
}

static void begin_to_close(redlock_client *client, const struct close_listener *listener) {
    if (client == NULL || client->context.is_closing || context_is_inherited(&client->context)) {
        return;
    }
    uint64_t timeout = nanos_from_ms(client->context.options.close_timeout_ms);
    client->context.is_closing = true;
    client->listener = *listener;
    timer_set(&client->close_deadline, nanos_add(clock_now(), timeout));
    context_wake(&client->context);
}

void redlock_client_close(redlock_client *client, redlock_closed_cb *on_closed, void *arg) {
    begin_to_close(client, &(struct close_listener){.on_closed = on_closed, .arg = arg});
}

void redlock_client_drain(redlock_client *client, redlock_drained_cb *on_drained, void *arg) {
    begin_to_close(client, &(struct close_listener){.on_drained = on_drained, .arg = arg});
}

/* ---- the turn ---- */

static void on_turn(void *arg) {
    redlock_client *client = arg;
    struct context *context = &client->context;
    context->is_woken = false;
    context->in_turn = true;
    if (probes_look(&context->probes)) {
        events_changed(&context->events);
    }
    /* Callbacks first, so that what they begin is sent in the same turn, and written once. */
    turn_locks(&client->locks);
    inspections_turn(&client->inspections);
    ready_turn(&client->ready);
    rounds_send(&client->rounds);
    net_flush(&context->net);
    turn_sent(&client->locks); /* deadlines count from the write */
    members_bury(&client->members);
    context->in_turn = false;
    bool has_more = turn_has_more(&client->locks) ||
                    (context->is_closing &&
                     (!TAILQ_EMPTY(&client->inspections.all) || ready_has_any(&client->ready)));
    if (may_end(client)) {
        end_client(client);
    } else if (has_more) { /* in the loop's next iteration: it serves the application first */
        timer_set(&context->turn, clock_now());
    }
}

/* ---- the heartbeat ---- */

/*
 * The lateness of a heartbeat that shows that the loop was away. During a suspend of the system the
 * loop's clock stops, and its timers are late by the whole suspend; the heartbeat is late by at
 * most its period, and then makes all locks read the clock.
 */
#define LATE (100 * NANOS_PER_MS)

/* Returns whether the client needs its connections. */
static bool is_in_use(const redlock_client *client) {
    return locks_have_any(&client->locks) || client->rounds.operations.out > 0 ||
           !TAILQ_EMPTY(&client->inspections.all) || ready_has_any(&client->ready) ||
           members_are_busy(&client->members);
}

/* Closes the connections of a client that has been idle for long. */
static void rest_if_idle(redlock_client *client, uint64_t now) {
    struct members *members = &client->members;
    uint64_t patience = nanos_from_ms(client->context.options.idle_close_ms);
    if (patience == 0 || members->is_resting) {
        return;
    }
    if (is_in_use(client)) {
        members->used_at = now;
    } else if (nanos_sub(now, members->used_at) >= patience) {
        members_rest(members, now);
    }
}

/* The period of the heartbeat. Beats for pushes, and channels, must not be late. */
static uint64_t heartbeat_period(const redlock_client *client) {
    return client->members.is_listening ? CHANNEL_BEAT_NANOS : MEMBERS_HEARTBEAT;
}

static void set_heartbeat(redlock_client *client, uint64_t now) {
    client->heartbeat_due = nanos_add(now, heartbeat_period(client));
    timer_set(&client->heartbeat, client->heartbeat_due);
}

/* Looks at what leases know of the nodes; `listening`, a mask, can push from now on. */
static void look_at_nodes(redlock_client *client, uint32_t listening) {
    const struct patience *patience = &client->context.patience;
    bool was_opening = patience->is_opening;
    members_measure(&client->members);
    if (listening != 0 || (was_opening && !patience->is_opening)) {
        turn_ask_again(&client->locks, listening);
    }
}

static void on_heartbeat(void *arg) {
    redlock_client *client = arg;
    struct context *context = &client->context;
    uint64_t now = clock_now();
    bool was_away = now >= nanos_add(client->heartbeat_due, LATE);
    if (context->is_closing) {
        return;
    }
    if (was_away) { /* losses may be overdue, though no timer has fired */
        turn_wake(&client->locks);
    }
    rest_if_idle(client, now);
    members_tend_channels(&client->members, client->locks.listeners > 0, now);
    members_beat(&client->members, heartbeat_period(client), now);
    look_at_nodes(client, 0);
    context_wake(context);
    set_heartbeat(client, now);
}

/* ---- events of the nodes ---- */

static void on_node_identity(void *arg, struct node *node) {
    const redlock_client *client = arg;
    members_identify(&client->members, node);
}

/* Begins the first tries, which may wait for the nodes to be known; a refused login ends a wait. */
static void on_node_attempt(void *arg) {
    redlock_client *client = arg;
    if (members_look(&client->members)) {
        turn_start(&client->locks);
    }
    ready_look(&client->ready);
}

/* If the nodes that are up make a quorum, limits the wait for the other nodes to a round's time. */
static void on_node_up(void *arg) {
    redlock_client *client = arg;
    look_at_nodes(client, 0);
    on_node_attempt(client); /* addresses that are left are not needed now */
    if (members_have_quorum(&client->members)) {
        turn_start(&client->locks);
    }
}

/*
 * If the nodes that are up make a quorum, renews the locks whose renewal failed. Waits for the
 * guard's verdict on the node, since a grant that does not count is of no use.
 */
static void on_node_sound(void *arg) {
    redlock_client *client = arg;
    ready_look(&client->ready);
    if (members_have_quorum(&client->members)) {
        turn_renew_now(&client->locks);
    }
}

/* Sends requests that wait, in a turn. */
static void on_node_room(void *arg) {
    redlock_client *client = arg;
    context_wake(&client->context);
}

static void on_releases_due(void *arg, struct node *node) {
    redlock_client *client = arg;
    release_retry(&client->rounds, node);
}

static void on_node_listening(void *arg, struct node *node) {
    redlock_client *client = arg;
    look_at_nodes(client, node_bit(node));
}

static void on_node_push(void *arg, struct node *node, const char *text, size_t length) {
    redlock_client *client = arg;
    pushes_take(&client->locks, node, text, length);
}

static void on_node_key_change(void *arg, struct node *node, const char *key, size_t length) {
    redlock_client *client = arg;
    watches_changed(&client->locks.watches, node_bit(node), key, length);
}

static const struct node_listener node_listener = {
    .on_identity = on_node_identity,
    .on_up = on_node_up,
    .on_sound = on_node_sound,
    .on_attempt = on_node_attempt,
    .on_room = on_node_room,
    .on_releases_due = on_releases_due,
    .on_listening = on_node_listening,
    .on_push = on_node_push,
    .on_change = on_node_key_change,
};

/* ---- the beginning ---- */

static redlock_status client_init(redlock_client *client, redlock_loop *loop,
                                  const redlock_options *options, redlock_error *error) {
    struct context *context = &client->context;
    redlock_status status = context_init(context, loop, options, on_turn, client, error);
    members_init(&client->members, context, &node_listener, client);
    rounds_init(&client->rounds, context, &client->members);
    locks_init(&client->locks, context, &client->members, &client->rounds);
    inspections_init(&client->inspections, context, &client->members);
    ready_init(&client->ready, context, &client->members);
    timer_init(&client->heartbeat, loop, on_heartbeat, client);
    timer_init(&client->close_deadline, loop, on_close_deadline, client);
    if (status != REDLOCK_OK) {
        return status;
    }
    return members_create(&client->members, options->nodes, (uint32_t)options->node_count, error);
}

/* Checks the arguments of a creation, and reads the options. `has_loop`: the loop is not NULL. */
static redlock_status check_creation(bool has_loop, const char *loop_name,
                                     const redlock_options *options, redlock_options *checked,
                                     redlock_client **handle, redlock_error *error) {
    if (handle == NULL) {
        return error_set(error, REDLOCK_EINVAL, "client: must not be NULL");
    }
    *handle = NULL;
    if (!has_loop || options == NULL) {
        return error_set(error, REDLOCK_EINVAL, "%s and options must not be NULL", loop_name);
    }
    redlock_status status = options_read(options, checked, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (!random_init()) {
        return error_set(error, REDLOCK_ESYSTEM, "libsodium cannot be initialised");
    }
    return fork_init() ? REDLOCK_OK : error_set(error, REDLOCK_ENOMEM, "out of memory");
}

static redlock_status create_client(redlock_loop *loop, const redlock_options *checked,
                                    redlock_client **handle, redlock_error *error) {
    redlock_allocator allocator = memory_allocator(checked->allocator);
    redlock_client *client = memory_zalloc(&allocator, sizeof(*client));
    if (client == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    redlock_status status = client_init(client, loop, checked, error);
    if (status != REDLOCK_OK) {
        client_free(client);
        return status;
    }
    uint64_t now = clock_now();
    members_use(&client->members, now);
    set_heartbeat(client, now);
    *handle = client;
    return error_set(error, REDLOCK_OK, "%s", redlock_strerror(REDLOCK_OK));
}

redlock_status redlock_client_create(struct event_base *base, const redlock_options *options,
                                     redlock_client **client, redlock_error *error) {
    redlock_options checked;
    redlock_status status = check_creation(base != NULL, "base", options, &checked, client, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    redlock_allocator allocator = memory_allocator(checked.allocator);
    redlock_loop *loop = loop_on_libevent(base, &allocator);
    if (loop == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    status = create_client(loop, &checked, client, error);
    loop_drop(loop); /* the client is its only user now */
    return status;
}

redlock_status redlock_client_create_on(redlock_loop *loop, const redlock_options *options,
                                        redlock_client **client, redlock_error *error) {
    redlock_options checked;
    redlock_status status = check_creation(loop != NULL, "loop", options, &checked, client, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (loop_is_inherited(loop)) {
        return error_set(error, REDLOCK_EINVAL,
                         "this process is a child (fork) of the one that made the loop");
    }
    return create_client(loop, &checked, client, error);
}

void client_mirror(redlock_client *client, const struct mirror *mirror) {
    client->context.mirror = *mirror;
}

/* ---- requests, and the state of a client ---- */

static redlock_status refuse_call(redlock_client *client, redlock_status status, const char *why) {
    return error_set(&client->context.refusal, status, "%s", why);
}

/* Refuses a call on NULL, or on a client that is closing or inherited (context_check). */
static redlock_status check_client(redlock_client *client) {
    return client != NULL ? context_check(&client->context) : REDLOCK_EINVAL;
}

static redlock_status accept(redlock_client *client, const redlock_request *request,
                             redlock_cb *on_acquired, void *arg, redlock_lock **lock) {
    redlock_status status = context_check(&client->context);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (request == NULL || on_acquired == NULL) {
        return refuse_call(client, REDLOCK_EINVAL, "request and on_acquired must not be NULL");
    }
    return handle_acquire(&client->locks, request, on_acquired, arg, lock);
}

redlock_status redlock_acquire(redlock_client *client, const redlock_request *request,
                               redlock_cb *on_acquired, void *arg, redlock_lock **lock) {
    if (lock != NULL) {
        *lock = NULL;
    }
    if (client == NULL) {
        return REDLOCK_EINVAL;
    }
    redlock_status status = accept(client, request, on_acquired, arg, lock);
    client->locks.counts.refused += status != REDLOCK_OK;
    return status;
}

const char *redlock_client_error(const redlock_client *client) {
    return client != NULL ? client->context.refusal.message : "";
}

static redlock_node_info info_of(const struct members *members, struct node *node) {
    struct trust_view view = guard_look(&node->guard);
    bool is_now = members->now.mask >> node->index & 1;
    /* without a change there is no next list, and no node leaves */
    bool is_next = members->next.count == 0 || (members->next.mask >> node->index & 1);
    return (redlock_node_info){
        .node = node_name(node),
        .connected = node_is_up(node),
        .reason = node->uplink.reason,
        .commands = uplink_commands(&node->uplink),
        .bytes = uplink_bytes(&node->uplink),
        .pending_releases = node->pending.count,
        .disconnected = node->uplink.disconnected,
        .trusted = view.fault == TRUST_NO_FAULT,
        .distrust = guard_why(&node->guard, &view),
        .distrust_ms = guard_distrust_ms(&view),
        .joining = !is_now,
        .leaving = !is_next,
    };
}

size_t redlock_client_nodes(const redlock_client *client, redlock_node_info *infos,
                            size_t capacity) {
    if (client == NULL) {
        return 0;
    }
    const struct members *members = &client->members;
    struct node *nodes[REDLOCK_MAX_NODES];
    uint32_t count = members_in_order(members, nodes);
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        infos[i] = info_of(members, nodes[i]);
    }
    return count;
}

redlock_status redlock_client_stats(const redlock_client *client, redlock_stats *stats) {
    return client != NULL ? stats_read(&client->locks.counts, stats) : REDLOCK_EINVAL;
}

redlock_status redlock_client_node_stats(const redlock_client *client, size_t index,
                                         redlock_node_stats *stats) {
    if (client == NULL) {
        return REDLOCK_EINVAL;
    }
    struct node *nodes[REDLOCK_MAX_NODES];
    uint32_t count = members_in_order(&client->members, nodes);
    return index < count ? stats_read_node(nodes[index], stats) : REDLOCK_EINVAL;
}

redlock_status redlock_client_ready(redlock_client *client, uint64_t timeout_ms,
                                    redlock_ready_cb *on_ready, void *arg) {
    redlock_status status = check_client(client);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (on_ready == NULL) {
        return refuse_call(client, REDLOCK_EINVAL, "the callback must not be NULL");
    }
    status = ready_ask(&client->ready, nanos_from_ms(timeout_ms), on_ready, arg);
    return status == REDLOCK_OK ? status
           : status == REDLOCK_EBUSY
               ? refuse_call(client, status, "1024 calls of redlock_client_ready wait already")
               : refuse_call(client, status, "out of memory");
}

/* ---- the change of nodes ---- */

/* Passes a change on to the locks. First tries may have waited for nodes that are known now. */
static void change_locks(redlock_client *client) {
    turn_move(&client->locks);
    if (client->members.are_known) {
        turn_start(&client->locks);
    }
}

redlock_status redlock_client_change_nodes(redlock_client *client, const char *const *nodes,
                                           size_t node_count) {
    redlock_status status = check_client(client);
    if (status != REDLOCK_OK) {
        return status;
    }
    status = members_change(&client->members, nodes, node_count, &client->context.refusal);
    if (status == REDLOCK_OK) {
        change_locks(client);
    }
    return status;
}

/* Ends a change of nodes. Sends the collected calls first: some may be for nodes that leave. */
static redlock_status end_change(redlock_client *client,
                                 redlock_status (*may_finish)(const struct members *,
                                                              redlock_error *),
                                 void (*finish)(struct members *)) {
    redlock_status status = check_client(client);
    if (status == REDLOCK_OK) {
        status = may_finish(&client->members, &client->context.refusal);
    }
    if (status == REDLOCK_OK) {
        rounds_send(&client->rounds);
        finish(&client->members);
        change_locks(client);
    }
    return status;
}

redlock_status redlock_client_commit_nodes(redlock_client *client) {
    return end_change(client, members_may_commit, members_commit);
}

redlock_status redlock_client_abandon_nodes(redlock_client *client) {
    return end_change(client, members_may_abandon, members_abandon);
}

/* ---- looking at locks ---- */

static redlock_status inspect(redlock_client *client, const char *key, size_t key_length,
                              uint64_t fence, const struct inspection_listener *listener) {
    redlock_status status = check_client(client);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (listener->on_view == NULL && listener->on_fence == NULL) {
        return refuse_call(client, REDLOCK_EINVAL, "the callback must not be NULL");
    }
    status = options_check_key("key", key, &key_length, &client->context.refusal);
    if (status != REDLOCK_OK) {
        return status;
    }
    status = inspections_ask(&client->inspections, key, key_length, fence, listener);
    return status == REDLOCK_OK ? status : refuse_call(client, status, "out of memory");
}

redlock_status redlock_inspect(redlock_client *client, const char *key, size_t key_length,
                               redlock_inspect_cb *on_view, void *arg) {
    const struct inspection_listener listener = {on_view, NULL, arg};
    return inspect(client, key, key_length, 0, &listener);
}

redlock_status redlock_check_fence(redlock_client *client, const char *key, size_t key_length,
                                   uint64_t fence, redlock_fence_cb *on_fence, void *arg) {
    const struct inspection_listener listener = {NULL, on_fence, arg};
    return inspect(client, key, key_length, fence, &listener);
}
