/*
 * The happy path: a watch, one for each key of a lock, is sent to nodes. Each node answers with the
 * key's value, and watches the key from then on. When a node reports that a key has changed, the
 * key's watches that are armed at the node notify their locks. A lock then asks all nodes, after
 * which its key is watched again. An answer that contradicts the node's vote also notifies the
 * lock.
 *
 * Failures: a watch lives until its last reply, which may come long after the lock has ended. While
 * a node owes a reply, it is not asked again until the reply has come. A server that sends messages
 * without end has little effect: messages without an armed watch are ignored, and a lock bounds the
 * rate at which it asks (core/change.h).
 */
#include "lock/watches.h"

#include "lock/lock_state.h"
#include "lock/waiters.h"
#include "node/members.h"
#include "node/node.h"

#include <string.h>

struct watch {
    struct tracking_requests requests;
    LIST_ENTRY(watch) link;
    struct watches *watches;
    struct watch *next;    /* the lock's next watch, of another key */
    redlock_lock *lock;    /* NULL: dropped */
    struct key *keys;      /* a reference to all keys of the lock */
    const struct key *key; /* the key of `keys` that is watched */
    uint32_t armed;        /* mask: nodes that have reported no change since they were asked */
    uint32_t pending;      /* mask: nodes whose answer is due */
    uint32_t again;        /* mask: nodes to ask again after that answer */
    uint32_t replies;      /* number of replies to come */
};

static const struct pool_kind watch_kind = {.size = sizeof(struct watch), .max_spares = 1024};

void watches_init(struct watches *watches, const redlock_allocator *allocator,
                  struct members *members, const struct watches_listener *listener) {
    watches->members = members;
    watches->listener = listener;
    watches->armed = 0;
    pool_init(&watches->pool, allocator, &watch_kind, NULL);
    for (unsigned i = 0; i < WATCHES_LISTS; i++) {
        LIST_INIT(&watches->lists[i]);
    }
}

void watches_finish(struct watches *watches) {
    pool_finish(&watches->pool);
}

/* ---- change notifications ---- */

static void report_change(struct watch *watch, uint32_t node) {
    watch->armed &= ~node; /* a server reports one change for each look */
    watch->watches->listener->on_key_changed(watch->lock, node);
}

/* Returns whether a message concerns a watch; `key` is NULL if any key may have changed. */
static bool is_of(const struct watch *watch, const char *key, size_t length) {
    return key == NULL ||
           (watch->key->length == length && memcmp(watch->key->bytes, key, length) == 0);
}

static void report_changes_in(const struct watch_list *list, uint32_t node, const char *key,
                              size_t length) {
    struct watch *watch;
    LIST_FOREACH(watch, list, link) {
        if ((watch->armed & node) && is_of(watch, key, length)) {
            report_change(watch, node);
        }
    }
}

void watches_changed(struct watches *watches, uint32_t node, const char *key, size_t length) {
    if (key != NULL) {
        report_changes_in(&watches->lists[key_hash(key, length) & (WATCHES_LISTS - 1)], node, key,
                          length);
        return;
    }
    /* FLUSHALL, for example: without an armed watch the node's messages cost no walk. */
    for (unsigned i = 0; (watches->armed & node) && i < WATCHES_LISTS; i++) {
        report_changes_in(&watches->lists[i], node, NULL, 0);
    }
    watches->armed &= ~node;
}

void watches_lapsed(const struct watches *watches) {
    for (unsigned i = 0; i < WATCHES_LISTS; i++) {
        const struct watch *watch;
        LIST_FOREACH(watch, &watches->lists[i], link) {
            watches->listener->on_lapse(watch->lock);
        }
    }
}

/* ---- sending ---- */

/* Frees a watch that was dropped, once no reply is due any more. */
static void put_watch(struct watch *watch) {
    if (watch->lock == NULL && watch->replies == 0) { /* replies refer to its two requests */
        key_drop(watch->keys);
        pool_put(&watch->watches->pool, watch);
    }
}

static void ask_to_watch(struct watch *watch, struct node *node) {
    uint32_t bit = node_bit(node);
    if (watch->pending & bit) { /* the two requests of the watch are still in use */
        watch->again |= bit;
        return;
    }
    unsigned sent =
        channel_watch(&node->channel, &watch->requests, watch->key->bytes, watch->key->length);
    watch->replies += sent;
    if (sent == 2) { /* CLIENT CACHING and GETRANGE: the first alone watches nothing */
        watch->pending |= bit;
        watch->armed |= bit;
        watch->watches->armed |= bit;
    }
}

static void on_caching(struct conn_request *request, void *owner, const struct reply *reply) {
    struct watch *watch =
        (struct watch *)(void *)((char *)request - offsetof(struct watch, requests.caching));
    struct node *node = node_of(owner);
    watch->replies--;
    if (reply != NULL && reply->type == REPLY_ERROR) { /* nothing is watched: log it once */
        tracking_refused(&node->channel.tracking, "+client|caching", reply);
    }
    put_watch(watch);
}

/* Returns whether a key's value, in a reply of `node`, contradicts the node's latest vote. */
static bool has_changed(const struct watch *watch, uint32_t node, const struct reply *reply) {
    const redlock_lock *lock = watch->lock;
    /* Before the first round there is no vote to contradict. */
    if (reply->type != REPLY_STRING || lock->operation == NULL) {
        return false;
    }
    bool is_ours = reply->length == TOKEN_LENGTH &&
                   memcmp(reply->text, lock->operation->arguments.value, TOKEN_LENGTH) == 0;
    redlock_vote vote = (redlock_vote)lock->operation->round.votes[node];
    /* Granted, but the key is not ours any more; or denied, but the key is free now. */
    return vote == REDLOCK_VOTE_GRANTED ? !is_ours
                                        : vote == REDLOCK_VOTE_DENIED && reply->length == 0;
}

static void take_look(struct watch *watch, struct node *node, const struct reply *reply) {
    uint32_t bit = node_bit(node);
    if (reply->type == REPLY_ERROR && reply_lacks_right(reply)) {
        tracking_refused(&node->channel.tracking, "+getrange", reply);
    } else if (watch->again & bit) { /* asked since: this answer may be too old */
        watch->again &= ~bit;
        ask_to_watch(watch, node);
    } else if (has_changed(watch, node->index, reply)) {
        report_change(watch, bit);
    }
}

static void on_look(struct conn_request *request, void *owner, const struct reply *reply) {
    struct watch *watch =
        (struct watch *)(void *)((char *)request - offsetof(struct watch, requests.look));
    struct node *node = node_of(owner);
    watch->replies--;
    watch->pending &= ~node_bit(node);
    if (reply == NULL) { /* the connection ended: on_lapse follows with the next channel */
        watch->again &= ~node_bit(node);
    } else if (watch->lock != NULL) {
        take_look(watch, node, reply);
    }
    put_watch(watch);
}

/* ---- the watches of a lock ---- */

/* Creates a watch for a key of a lock, ahead of `next`. Returns NULL when out of memory. */
static struct watch *create_watch(struct watches *watches, redlock_lock *lock,
                                  const struct key *key, struct watch *next) {
    struct watch *watch = pool_take(&watches->pool);
    if (watch != NULL) {
        *watch = (struct watch){
            .requests = {.caching.on_reply = on_caching, .look.on_reply = on_look},
            .watches = watches,
            .next = next,
            .lock = lock,
            .keys = key_hold(lock->key),
            .key = key,
        };
        LIST_INSERT_HEAD(&watches->lists[key->hash & (WATCHES_LISTS - 1)], watch, link);
    }
    return watch;
}

/* Gives a lock a watch for each key that a message can hold; none at all without memory. */
static void create_all(struct watches *watches, redlock_lock *lock) {
    for (const struct key *key = lock->key; key != NULL; key = key->next) {
        if (key->length > WAITERS_KEY_MAX) { /* its messages may be too long to read */
            continue;
        }
        struct watch *watch = create_watch(watches, lock, key, lock->wait->watch);
        if (watch == NULL) {
            watches_drop(lock);
            return;
        }
        lock->wait->watch = watch;
    }
}

void watches_drop(redlock_lock *lock) {
    struct watch *watch;
    while (lock->wait != NULL && (watch = lock->wait->watch) != NULL) {
        lock->wait->watch = watch->next;
        LIST_REMOVE(watch, link);
        watch->lock = NULL;
        put_watch(watch);
    }
}

void watches_look(struct watches *watches, redlock_lock *lock, uint32_t nodes) {
    if (nodes == 0) {
        return;
    }
    const struct watch *first = lock->wait->watch;
    if (first == NULL || first->keys != lock->key) { /* a new try may be for another permit */
        watches_drop(lock);
        create_all(watches, lock);
    }
    for (struct watch *watch = lock->wait->watch; watch != NULL; watch = watch->next) {
        uint32_t rest = nodes;
        struct node *node;
        while ((node = members_take(watches->members, &rest)) != NULL) {
            ask_to_watch(watch, node);
        }
    }
}
