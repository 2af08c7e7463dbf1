/*
 * The happy path: members_create makes a node of each URI, in slots from 0 on. members_change makes
 * the nodes that are new, in free slots, and puts the next list beside the old one; members_commit
 * has it take the old one's place, and stops the nodes that are in no list any more.
 *
 * When to do which is the operator's to know, but for one bound that a client can see by itself: a
 * lock that was acquired before the change is known to the old list alone for up to max_ttl.
 */
#include "members.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "batch.h"
#include "context.h"
#include "core/options.h"
#include "io/clock.h"
#include "node.h"

#include <inttypes.h>

static void list_add(struct node_list *list, uint32_t slot) {
    list->mask |= UINT32_C(1) << slot;
    list->slots[list->count++] = (uint8_t)slot;
}

uint32_t members_in_order(const struct members *members, struct node *nodes[REDLOCK_MAX_NODES]) {
    const struct node_list *lists[] = {&members->now, &members->next};
    uint32_t count = 0;
    uint32_t seen = 0;
    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < lists[i]->count; k++) {
            uint32_t slot = lists[i]->slots[k];
            if (!(seen >> slot & 1)) {
                seen |= UINT32_C(1) << slot;
                nodes[count++] = members->nodes[slot];
            }
        }
    }
    return count;
}

/* ---- nodes that come ---- */

static void destroy_node(struct node *node) {
    redlock_allocator allocator = node->context->allocator;
    node_finish(node);
    memory_free(&allocator, node);
}

/* `position` is its place in the application's list. */
static redlock_status create_node(struct context *context, uint32_t position, const char *uri,
                                  struct node **created, redlock_error *error) {
    struct node *node = memory_alloc(&context->allocator, sizeof(*node));
    if (node == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    redlock_status status = node_init(node, context, position, uri, error);
    if (status != REDLOCK_OK) {
        destroy_node(node);
        return status;
    }
    *created = node;
    return REDLOCK_OK;
}

redlock_status members_create(struct context *context, const char *const *uris, uint32_t count,
                              redlock_error *error) {
    struct members *members = &context->members;
    for (uint32_t i = 0; i < count; i++) {
        redlock_status status = create_node(context, i, uris[i], &members->nodes[i], error);
        if (status != REDLOCK_OK) {
            return status;
        }
        list_add(&members->now, i);
    }
    members->cursor = count;
    return REDLOCK_OK;
}

static void start(struct context *context, uint32_t mask) {
    struct node *node;
    while ((node = members_take(&context->members, &mask)) != NULL) {
        node_start(node);
    }
}

void members_start(struct context *context) {
    start(context, members_all(&context->members));
}

/* ---- nodes that go ---- */

void members_stop(struct context *context) {
    uint32_t rest = members_all(&context->members);
    struct node *node;
    while ((node = members_take(&context->members, &rest)) != NULL) {
        node_stop(node, "the client is closing");
    }
}

void members_finish(struct context *context) {
    struct members *members = &context->members;
    uint32_t rest = members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        destroy_node(node);
    }
    while ((node = SLIST_FIRST(&members->left)) != NULL) {
        SLIST_REMOVE_HEAD(&members->left, left_link);
        destroy_node(node);
    }
}

/* What is under way at it ends: without an answer. */
static void leave(struct context *context, struct node *node) {
    struct members *members = &context->members;
    node_stop(node, "it is in no list any more");
    node_forgive(node);
    members->nodes[node->index] = NULL;
    SLIST_INSERT_HEAD(&members->left, node, left_link);
    guard_left(&node->guard);
    log_line(&context->log, REDLOCK_LOG_INFO, "node %s: left", node->name);
}

/* Has one list take the place of both. */
static void settle_on(struct context *context, const struct node_list *list) {
    struct members *members = &context->members;
    batch_send_all(context); /* by their slots, those calls are meant for who is there now */
    uint32_t leaving = members_all(members) & ~list->mask;
    struct node *node;
    members->now = *list;
    members->next = (struct node_list){0};
    while ((node = members_take(members, &leaving)) != NULL) {
        leave(context, node);
    }
    context_wake(context);
}

/* ---- the next list ---- */

/* The nodes of a list that is not in force yet; those that are new have no slot among members. */
struct draft {
    struct node_list list;
    uint32_t coming; /* mask */
    struct node *nodes[REDLOCK_MAX_NODES];
};

static struct node *find_node(const struct members *members, const struct draft *draft,
                              const struct uri *uri) {
    for (uint32_t slot = 0; slot < REDLOCK_MAX_NODES; slot++) {
        struct node *node = draft->coming >> slot & 1 ? draft->nodes[slot] : members->nodes[slot];
        if (node != NULL && uri_is_same_server(&node->uri, uri)) {
            return node;
        }
    }
    return NULL;
}

static bool find_slot(struct members *members, const struct draft *draft, uint32_t *slot) {
    uint32_t taken = members_all(members) | draft->coming;
    for (uint32_t i = 0; i < REDLOCK_MAX_NODES; i++) {
        *slot = members->cursor++ % REDLOCK_MAX_NODES;
        if (!(taken >> *slot & 1)) {
            return true;
        }
    }
    return false;
}

/* A server that is a node already keeps its connection, its trust and its slot. */
static redlock_status draft_known(struct draft *draft, uint32_t position, const struct node *known,
                                  const struct node *given, redlock_error *error) {
    if (draft->list.mask >> known->index & 1) {
        return error_set(error, REDLOCK_EINVAL, "nodes[%" PRIu32 "]: %s is named twice", position,
                         given->name);
    }
    if (!uri_is_same_login(&known->uri, &given->uri)) {
        return error_set(error, REDLOCK_EINVAL,
                         "nodes[%" PRIu32 "]: %s is a node already, with another login, TLS or "
                         "durable",
                         position, given->name);
    }
    list_add(&draft->list, known->index);
    return REDLOCK_OK;
}

static redlock_status draft_new(struct members *members, struct draft *draft, struct node *node,
                                redlock_error *error) {
    if (!find_slot(members, draft, &node->index)) {
        return error_set(error, REDLOCK_EINVAL, "nodes: more than %d in both lists together",
                         REDLOCK_MAX_NODES);
    }
    draft->nodes[node->index] = node;
    draft->coming |= UINT32_C(1) << node->index;
    list_add(&draft->list, node->index);
    return REDLOCK_OK;
}

static redlock_status draft_node(struct context *context, struct draft *draft, uint32_t position,
                                 const char *uri, redlock_error *error) {
    struct members *members = &context->members;
    struct node *node;
    redlock_status status = create_node(context, position, uri, &node, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    const struct node *known = find_node(members, draft, &node->uri);
    status = known != NULL ? draft_known(draft, position, known, node, error)
                           : draft_new(members, draft, node, error);
    if (known != NULL || status != REDLOCK_OK) {
        destroy_node(node);
    }
    return status;
}

/* The members' nodes are not among them yet. */
static void drop_draft(const struct draft *draft) {
    for (uint32_t rest = draft->coming; rest != 0; rest &= rest - 1) {
        destroy_node(draft->nodes[__builtin_ctz(rest)]);
    }
}

static void adopt(struct context *context, const struct draft *draft) {
    struct members *members = &context->members;
    for (uint32_t rest = draft->coming; rest != 0; rest &= rest - 1) {
        uint32_t slot = (uint32_t)__builtin_ctz(rest);
        members->nodes[slot] = draft->nodes[slot];
    }
    members->next = draft->list;
    members->changed_at = clock_now();
    start(context, draft->coming);
}

/* ---- a change ---- */

redlock_status members_change(struct context *context, const char *const *uris, size_t count,
                              redlock_error *error) {
    struct draft draft = {.coming = 0};
    if (context->members.next.count > 0) {
        return error_set(error, REDLOCK_EBUSY,
                         "the nodes are being changed: that must be committed or abandoned first");
    }
    redlock_status status = options_check_nodes(uris, count, error);
    for (uint32_t i = 0; i < count && status == REDLOCK_OK; i++) {
        status = draft_node(context, &draft, i, uris[i], error);
    }
    if (status != REDLOCK_OK) {
        drop_draft(&draft);
        return status;
    }
    adopt(context, &draft);
    log_line(&context->log, REDLOCK_LOG_INFO,
             "nodes: a quorum of %" PRIu32 " and of the next %" PRIu32 " is needed from now on",
             context->members.now.count, draft.list.count);
    return REDLOCK_OK;
}

static redlock_status check_changing(const struct members *members, redlock_error *error) {
    return members->next.count > 0
               ? REDLOCK_OK
               : error_set(error, REDLOCK_EINVAL, "the nodes are not being changed");
}

redlock_status members_commit(struct context *context, redlock_error *error) {
    struct members *members = &context->members;
    redlock_status status = check_changing(members, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    uint64_t since = clock_now() - members->changed_at;
    uint64_t max_ttl = nanos_from_ms(context->options.max_ttl_ms);
    if (since < max_ttl) {
        return error_set(error, REDLOCK_EBUSY,
                         "locks that only the old nodes know may live for %" PRIu64 " ms more",
                         nanos_to_ms(max_ttl - since) + 1);
    }
    const struct node_list next = members->next;
    settle_on(context, &next);
    log_line(&context->log, REDLOCK_LOG_INFO, "nodes: changed, a quorum of %" PRIu32 " is needed",
             next.count);
    return REDLOCK_OK;
}

redlock_status members_abandon(struct context *context, redlock_error *error) {
    redlock_status status = check_changing(&context->members, error);
    if (status == REDLOCK_OK) {
        const struct node_list now = context->members.now;
        settle_on(context, &now);
        log_line(&context->log, REDLOCK_LOG_INFO, "nodes: the change is abandoned");
    }
    return status;
}
