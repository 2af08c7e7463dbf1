/*
 * The happy path: members_create makes a node for each URI, at indexes from 0 on. members_change
 * makes nodes for the new servers, at free indexes, and adds the next list; from then on a quorum
 * of both lists is needed. members_commit replaces the present list by the next one, and stops the
 * nodes that are in no list any more.
 *
 * The operator decides when a change ends. The client enforces one bound: until max_ttl after the
 * start of the change, only the present list may know the locks that were acquired before it.
 *
 * Two nodes may turn out to be one server. The node that answered first counts; the other one is
 * its duplicate, and its votes do not count. Votes come after the answer that identifies the
 * server, so two votes of one server never count.
 */
#include "node/members.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "core/event.h"
#include "core/options.h"
#include "io/clock.h"
#include "node/context.h"
#include "node/node.h"
#include "wire/fence.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void members_init(struct members *members, struct context *context,
                  const struct node_listener *listener, void *arg) {
    *members = (struct members){
        .context = context, .listener = listener, .listener_arg = arg, .is_resting = true};
    SLIST_INIT(&members->left);
    members_measure(members);
}

static void list_add(struct node_list *list, uint32_t index) {
    list->mask |= UINT32_C(1) << index;
    list->indexes[list->count++] = (uint8_t)index;
}

uint32_t members_in_order(const struct members *members, struct node *nodes[REDLOCK_MAX_NODES]) {
    const struct node_list *lists[] = {&members->now, &members->next};
    uint32_t count = 0;
    uint32_t seen = 0;
    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < lists[i]->count; k++) {
            uint32_t index = lists[i]->indexes[k];
            if (!(seen >> index & 1)) {
                seen |= UINT32_C(1) << index;
                nodes[count++] = members->nodes[index];
            }
        }
    }
    return count;
}

/* Returns the nodes of which `is_true` holds, as a mask. */
static uint32_t nodes_where(const struct members *members, bool is_true(const struct node *node)) {
    uint32_t rest = members_all(members);
    uint32_t found = 0;
    const struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        found |= is_true(node) ? node_bit(node) : 0;
    }
    return found;
}

uint32_t members_up(const struct members *members) {
    return nodes_where(members, node_is_up);
}

static bool has_pending_releases(const struct node *node) {
    return node->pending.count > 0;
}

bool members_are_busy(const struct members *members) {
    return members->next.count > 0 || nodes_where(members, has_pending_releases) != 0;
}

static bool lacks_channel(const struct node *node) {
    return uplink_takes_commands(&node->uplink) && node_channel(node)[0] == '\0';
}

bool members_can_push(const struct members *members) {
    return nodes_where(members, lacks_channel) == 0;
}

/* Returns whether `nodes`, a mask, include a quorum of each list. */
static bool include_quorum(const struct members *members, uint32_t nodes) {
    return quorum_is_met(members->now.mask, nodes) && quorum_is_met(members->next.mask, nodes);
}

bool members_have_quorum(const struct members *members) {
    return include_quorum(members, members_up(members));
}

bool members_count(const struct members *members, uint64_t *changes_at) {
    uint32_t rest = members_all(members);
    uint32_t counting = 0;
    const struct node *node;
    *changes_at = NANOS_NEVER;
    while ((node = members_take(members, &rest)) != NULL) {
        struct trust_view view = guard_look(&node->guard);
        if (!node_is_up(node)) { /* Trust: the next connection begins without any */
            continue;
        }
        counting |= guard_counts(&node->guard) ? node_bit(node) : 0; /* Trust: as for a grant */
        *changes_at = view.until != 0 ? nanos_min(*changes_at, view.until) : *changes_at;
    }
    return include_quorum(members, counting);
}

bool members_refuse(const struct members *members) {
    return !include_quorum(members, ~nodes_where(members, node_refuses));
}

void members_beat(const struct members *members, uint64_t period, uint64_t now) {
    uint32_t rest = members_up(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        bool is_alert = members->is_listening && now < members->alert_until;
        uint64_t longest = is_alert ? GUARD_WAITING_NANOS : node->guard.gap;
        if (nanos_sub(now, node->guard.beaten_at) + period > longest) {
            node_send_beat(node, now);
        }
    }
}

static int by_lead(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one;
    int64_t b = *(const int64_t *)other;
    return a < b ? -1 : a > b;
}

/* Computes by how much the masters' clocks are ahead of ours. Returns false if none is known. */
static bool compare_clocks(const struct members *members, int64_t *ahead) {
    uint32_t rest = members_all(members);
    int64_t leads[REDLOCK_MAX_NODES];
    unsigned count = 0;
    const struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        count += trust_clock(&node->guard.trust, &leads[count]);
    }
    if (count == 0) {
        return false;
    }
    qsort(leads, count, sizeof(leads[0]), by_lead);
    /* Fence: a minority of fast clocks must not decide, so the largest `minority` are left out. */
    uint32_t size = (uint32_t)__builtin_popcount(members_lists(members).now);
    unsigned minority = size - quorum_of(size);
    *ahead = leads[count - 1 - (count > minority ? minority : 0)];
    return true;
}

/* Keeps the computed lead for a second, or until a node's clock is read (guard_look_again). */
uint64_t members_clock_us(const struct members *members, uint64_t now) {
    struct context *context = members->context;
    if (now >= context->masters_ahead_until) {
        if (!compare_clocks(members, &context->masters_ahead)) {
            return 0;
        }
        context->masters_ahead_until = nanos_add(now, 1000 * NANOS_PER_MS);
    }
    return (now + (uint64_t)context->masters_ahead) / NANOS_PER_US;
}

uint64_t members_fence_from_clock(const struct members *members, uint64_t now) {
    uint64_t clock_us = members_clock_us(members, now);
    /* Fence: our clock may be wrong, so it serves only until a master's clock is known. */
    return fence_from_clock(clock_us != 0 ? clock_us : clock_wall_us());
}

uint64_t members_fence_limit(const struct members *members, uint64_t now) {
    return members_fence_from_clock(members, now) + FENCE_SLACK;
}

void members_listen(struct members *members) {
    uint32_t rest = members_all(members);
    struct node *node;
    if (members->is_listening) {
        return;
    }
    members->is_listening = true;
    members->needed_at = clock_now();
    while ((node = members_take(members, &rest)) != NULL) {
        channel_want(&node->channel, true);
    }
    /* Trust: the heartbeat that is due next may be too late for a push to count until then. */
    members_beat(members, MEMBERS_HEARTBEAT, members->needed_at);
    members_measure(members);
}

void members_tend_channels(struct members *members, bool are_needed, uint64_t now) {
    uint32_t rest = members->is_listening ? members_all(members) : 0;
    struct node *node;
    members->needed_at = are_needed ? now : members->needed_at;
    members->is_listening &= nanos_sub(now, members->needed_at) < MEMBERS_LINGER;
    while ((node = members_take(members, &rest)) != NULL) {
        if (members->is_listening) {
            channel_beat(&node->channel, now);
        } else {
            channel_want(&node->channel, false);
        }
    }
}

struct round_silence members_silence(const struct members *members, uint32_t silent,
                                     uint64_t sent_at, uint64_t margin, uint64_t now) {
    struct round_silence silence = {.late = silent & ~members_all(members), .next = NANOS_NEVER};
    uint32_t rest = silent & members_all(members);
    const struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        uint64_t due = uplink_answer_due(&node->uplink, sent_at, margin);
        silence.late |= due <= now ? node_bit(node) : 0;
        silence.next = due > now ? nanos_min(silence.next, due) : silence.next;
    }
    return silence;
}

static bool is_opening(const struct node *node) {
    return channel_is_opening(&node->channel);
}

void members_measure(const struct members *members) {
    uint64_t fixed = nanos_from_ms(members->context->options.node_timeout_ms);
    struct patience patience = {.least = fixed != 0 ? fixed : ANSWER_TIMEOUT_FIRST};
    uint32_t rest = members_up(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        node_look_at_answers(node);
        uint64_t least = uplink_answer_timeout(&node->uplink, ANSWER_MARGIN_SPLIT);
        uint64_t most = uplink_answer_timeout(&node->uplink, ANSWER_MARGIN);
        patience.least = nanos_min(patience.least, least);
        patience.most = nanos_max(patience.most, most);
    }
    patience.most = nanos_max(patience.most, patience.least);
    patience.is_opening = !include_quorum(members, ~nodes_where(members, is_opening));
    members->context->patience = patience;
}

uint32_t members_admit(const struct members *members) {
    if (!include_quorum(members, nodes_where(members, node_admits))) {
        return 0;
    }
    return members->context->patience.is_opening ? NODE_OPENING_MAX : UINT32_MAX;
}

uint32_t members_without_room(const struct members *members, uint32_t nodes) {
    uint32_t rest = nodes & members_all(members);
    uint32_t without = 0;
    const struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        without |= node_admits(node) ? 0 : node_bit(node);
    }
    return without;
}

void members_read(const struct members *members) {
    uint32_t rest = members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        uplink_read(&node->uplink);
        uplink_read(&node->channel.uplink);
    }
}

/* ---- two nodes that are one server ---- */

static bool is_same_server(const struct node *node, const struct node *other) {
    const char *identity = guard_identity(&node->guard);
    return identity[0] != '\0' && strcmp(guard_identity(&other->guard), identity) == 0;
}

/* Makes a node the duplicate of the node that is the same server and counts, or of none. */
static void find_original(const struct members *members, struct node *node) {
    uint32_t rest = members_all(members);
    const char *original = NULL;
    const struct node *other;
    while ((other = members_take(members, &rest)) != NULL) {
        /* Trust: a server has one vote, which stays with the node that had it first. */
        if (other != node && !node_is_duplicate(other) && is_same_server(node, other)) {
            original = node_name(other);
        }
    }
    guard_set_original(&node->guard, original);
}

/* Searches again for the original of each duplicate of `node`, which has left or changed server. */
static void find_originals_of(const struct members *members, const struct node *node) {
    uint32_t rest = members_all(members);
    struct node *other;
    while ((other = members_take(members, &rest)) != NULL) {
        if (guard_original(&other->guard) == node_name(node)) {
            find_original(members, other);
            guard_look_again(&other->guard);
        }
    }
}

void members_identify(const struct members *members, struct node *node) {
    find_original(members, node);
    find_originals_of(members, node);
}

/* ---- whether the nodes are known ---- */

/* Returns whether the node is being looked up, or has addresses left to try, for the first time. */
static bool is_unknown(const struct node *node) {
    return !uplink_is_known(&node->uplink);
}

static bool has_found_all(const struct members *members) {
    return nodes_where(members, is_unknown) == 0;
}

static bool is_new(const struct node *node) {
    return uplink_is_new(&node->uplink);
}

static bool is_ready(const struct node *node) {
    return uplink_takes_commands(&node->uplink) && uplink_is_known(&node->uplink);
}

/* Returns whether a quorum of each list takes commands, and has no other address to try. */
static bool can_ask_quorum(const struct members *members) {
    return include_quorum(members, nodes_where(members, is_ready));
}

/*
 * A try before the handshake has found the scripts would have to carry their texts. The nodes that
 * still connect when a quorum is UP take the commands of the try, and need not be waited for.
 */
static bool may_begin(const struct members *members) {
    return members->are_found &&
           (members_have_quorum(members) || nodes_where(members, is_new) == 0);
}

bool members_look(struct members *members) {
    bool was_known = members->are_known;
    members->context->has_quorum = members_have_quorum(members);
    members->are_found |= has_found_all(members);
    members->are_known |= may_begin(members);
    return members->are_known && !was_known;
}

void members_wait_no_longer(struct members *members) {
    members->are_known = true;
}

/* ---- nodes that come ---- */

static void destroy_node(struct node *node) {
    redlock_allocator allocator = node->uplink.context->allocator;
    node_finish(node);
    memory_free(&allocator, node);
}

/* Creates a node, not started; `position` is the URI's index in the application's list. */
static redlock_status create_node(struct members *members, uint32_t position, const char *uri,
                                  struct node **created, redlock_error *error) {
    struct context *context = members->context;
    struct node *node = memory_alloc(&context->allocator, sizeof(*node));
    if (node == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    redlock_status status =
        node_init(node, context, members->listener, members->listener_arg, position, uri, error);
    if (status != REDLOCK_OK) {
        destroy_node(node);
        return status;
    }
    *created = node;
    return REDLOCK_OK;
}

/*
 * Refuses the URI at `position`, because `list`, those before it, names its server already, as the
 * node of `index`. With two votes of one server a client would deny itself.
 */
static redlock_status refuse_second(const struct node_list *list, uint32_t index, const char *first,
                                    uint32_t position, const char *second, redlock_error *error) {
    uint32_t before = 0;
    while (list->indexes[before] != index) {
        before++;
    }
    return error_set(error, REDLOCK_EINVAL,
                     "nodes[%" PRIu32 "]: %.90s is named twice, as nodes[%" PRIu32 "] %.90s",
                     position, second, before, first);
}

static redlock_status add_first(struct members *members, uint32_t position, const char *uri,
                                redlock_error *error) {
    struct node **node = &members->nodes[position];
    redlock_status status = create_node(members, position, uri, node, error);
    for (uint32_t i = 0; i < position && status == REDLOCK_OK; i++) {
        const struct node *before = members->nodes[i];
        if (uri_is_same_server(&before->uplink.uri, &(*node)->uplink.uri)) {
            status = refuse_second(&members->now, i, node_name(before), position, node_name(*node),
                                   error);
        }
    }
    if (status == REDLOCK_OK) {
        list_add(&members->now, position);
    } else if (*node != NULL) {
        destroy_node(*node);
        *node = NULL;
    }
    return status;
}

redlock_status members_create(struct members *members, const char *const *uris, uint32_t count,
                              redlock_error *error) {
    for (uint32_t i = 0; i < count; i++) {
        redlock_status status = add_first(members, i, uris[i], error);
        if (status != REDLOCK_OK) {
            return status;
        }
    }
    members->cursor = count;
    return REDLOCK_OK;
}

static void start_nodes(struct members *members, uint32_t mask) {
    struct node *node;
    while ((node = members_take(members, &mask)) != NULL) {
        node_start(node);
        channel_want(&node->channel, members->is_listening);
    }
    /* Redlock: a quorum is enough; a try waits only for nodes that it cannot do without. */
    members->are_found = has_found_all(members) || can_ask_quorum(members);
    members->are_known = may_begin(members);
}

/* ---- nodes that rest ---- */

void members_use(struct members *members, uint64_t now) {
    members->used_at = now;
    if (members->is_resting) {
        members->is_resting = false;
        start_nodes(members, members_all(members));
    }
}

void members_rest(struct members *members, uint64_t now) {
    uint32_t rest = members_all(members);
    struct node *node;
    members->is_resting = true;
    members->is_listening = members->are_found = members->are_known = false;
    members->context->has_quorum = false;
    while ((node = members_take(members, &rest)) != NULL) {
        node_stop(node, "closed: the client was idle");
    }
    EMIT(&members->context->events, connections_closed, .idle = nanos_sub(now, members->used_at));
}

/* ---- nodes that go ---- */

void members_stop(struct members *members) {
    uint32_t rest = members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        node_stop(node, "the client is closing");
    }
}

void members_bury(struct members *members) {
    struct node *node;
    while ((node = SLIST_FIRST(&members->left)) != NULL) {
        SLIST_REMOVE_HEAD(&members->left, left_link);
        destroy_node(node);
    }
}

void members_finish(struct members *members) {
    uint32_t rest = members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        destroy_node(node);
    }
    members_bury(members);
}

/*
 * Stops a node that has left the lists, and drops its pending releases. Its commands under way end
 * without an answer. The node is freed at the end of the turn: functions on the stack, and the
 * texts of reports, may refer to it.
 */
static void leave(struct members *members, struct node *node) {
    node_stop(node, "it is in no list any more");
    node_drop_releases(node);
    members->nodes[node->index] = NULL;
    SLIST_INSERT_HEAD(&members->left, node, left_link);
    find_originals_of(members, node);
    EMIT(&members->context->events, node_left, .node = node_name(node));
}

/* Makes `list` the only list; all nodes outside of it leave. */
static void set_only_list(struct members *members, const struct node_list *list) {
    uint32_t leaving = members_all(members) & ~list->mask; /* before the lists change */
    struct node *node;
    members->now = *list;
    members->next = (struct node_list){0};
    while ((node = members_take(members, &leaving)) != NULL) {
        leave(members, node);
    }
    members_look(members);
    context_wake(members->context);
}

/* ---- the next list ---- */

/* A list that does not count yet. Its new nodes have indexes, but are not members. */
struct draft {
    struct node_list list;
    uint32_t coming;                       /* mask: the new nodes */
    struct node *nodes[REDLOCK_MAX_NODES]; /* the new nodes, by index */
};

static struct node *find_node(const struct members *members, const struct draft *draft,
                              const struct uri *uri) {
    for (uint32_t index = 0; index < REDLOCK_MAX_NODES; index++) {
        struct node *node =
            draft->coming >> index & 1 ? draft->nodes[index] : members->nodes[index];
        if (node != NULL && uri_is_same_server(&node->uplink.uri, uri)) {
            return node;
        }
    }
    return NULL;
}

static bool find_index(struct members *members, const struct draft *draft, uint32_t *index) {
    uint32_t taken = members_all(members) | draft->coming;
    /* From the cursor on, so that votes of a node that has left do not meet a new one's bit. */
    for (uint32_t i = 0; i < REDLOCK_MAX_NODES; i++) {
        *index = members->cursor++ % REDLOCK_MAX_NODES;
        if (!(taken >> *index & 1)) {
            return true;
        }
    }
    return false;
}

/* Adds a server that is a node already: it keeps its connection, its trust and its index. */
static redlock_status draft_known(struct draft *draft, uint32_t position, const struct node *known,
                                  const struct node *given, redlock_error *error) {
    if (draft->list.mask >> known->index & 1) {
        return refuse_second(&draft->list, known->index, node_name(known), position,
                             node_name(given), error);
    }
    if (!uri_is_same_login(&known->uplink.uri, &given->uplink.uri)) {
        return error_set(error, REDLOCK_EINVAL,
                         "nodes[%" PRIu32 "]: %s is a node already, with another login, TLS or "
                         "durable",
                         position, node_name(given));
    }
    list_add(&draft->list, known->index);
    return REDLOCK_OK;
}

static redlock_status draft_new(struct members *members, struct draft *draft, struct node *node,
                                redlock_error *error) {
    if (!find_index(members, draft, &node->index)) {
        return error_set(error, REDLOCK_EINVAL, "nodes: more than %d in both lists together",
                         REDLOCK_MAX_NODES);
    }
    draft->nodes[node->index] = node;
    draft->coming |= UINT32_C(1) << node->index;
    list_add(&draft->list, node->index);
    return REDLOCK_OK;
}

static redlock_status draft_node(struct members *members, struct draft *draft, uint32_t position,
                                 const char *uri, redlock_error *error) {
    struct node *node;
    redlock_status status = create_node(members, position, uri, &node, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    const struct node *known = find_node(members, draft, &node->uplink.uri);
    status = known != NULL ? draft_known(draft, position, known, node, error)
                           : draft_new(members, draft, node, error);
    if (known != NULL || status != REDLOCK_OK) {
        destroy_node(node);
    }
    return status;
}

/* Destroys the new nodes of a draft that is not adopted. */
static void drop_draft(const struct draft *draft) {
    for (uint32_t rest = draft->coming; rest != 0; rest &= rest - 1) {
        destroy_node(draft->nodes[__builtin_ctz(rest)]);
    }
}

static void adopt_draft(struct members *members, const struct draft *draft) {
    for (uint32_t rest = draft->coming; rest != 0; rest &= rest - 1) {
        uint32_t index = (uint32_t)__builtin_ctz(rest);
        members->nodes[index] = draft->nodes[index];
    }
    members->next = draft->list; /* Node change: from here on quorums of both lists are needed */
    members->changed_at = clock_now();
    start_nodes(members, draft->coming);
}

/* ---- a change ---- */

redlock_status members_change(struct members *members, const char *const *uris, size_t count,
                              redlock_error *error) {
    struct draft draft = {.coming = 0};
    if (members->next.count > 0) {
        return error_set(error, REDLOCK_EBUSY,
                         "the nodes are being changed: that must be committed or abandoned first");
    }
    redlock_status status = options_check_nodes(uris, count, error);
    for (uint32_t i = 0; i < count && status == REDLOCK_OK; i++) {
        status = draft_node(members, &draft, i, uris[i], error);
    }
    if (status != REDLOCK_OK) {
        drop_draft(&draft);
        return status;
    }
    members_use(members, clock_now());
    adopt_draft(members, &draft);
    EMIT(&members->context->events, change_begun, .nodes = members->now.count,
         .next = draft.list.count);
    return REDLOCK_OK;
}

redlock_status members_may_abandon(const struct members *members, redlock_error *error) {
    return members->next.count > 0
               ? REDLOCK_OK
               : error_set(error, REDLOCK_EINVAL, "the nodes are not being changed");
}

redlock_status members_may_commit(const struct members *members, redlock_error *error) {
    redlock_status status = members_may_abandon(members, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    /* Node change: an older lock, which is not renewed, is unknown to the next list. */
    uint64_t since = clock_now() - members->changed_at;
    uint64_t max_ttl = nanos_from_ms(members->context->options.max_ttl_ms);
    if (since < max_ttl) {
        return error_set(error, REDLOCK_EBUSY,
                         "locks that only the old nodes know may live for %" PRIu64 " ms more",
                         nanos_to_ms(max_ttl - since) + 1);
    }
    return REDLOCK_OK;
}

void members_commit(struct members *members) {
    const struct node_list next = members->next;
    set_only_list(members, &next);
    EMIT(&members->context->events, change_committed, .nodes = next.count);
}

void members_abandon(struct members *members) {
    const struct node_list now = members->now;
    set_only_list(members, &now);
    EMIT(&members->context->events, change_abandoned, .nodes = now.count);
}
