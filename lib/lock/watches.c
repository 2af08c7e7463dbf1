/*
 * The happy path: a watch, for each key of a lock, is sent to nodes: each answers the key's value,
 * and from then on watches the key. When a node says that a key has changed, the watches of the key
 * that are armed at the node notify their locks, which look; a look that is done has the key
 * watched again. The answer itself is such a change notification where the key is no more as the
 * node's vote said.
 *
 * Failures: a watch lives until its last reply, however long after its lock. While a node owes a
 * reply it is sent no other; then the watch is sent again. Messages that no armed watch waits for
 * are passed over, and a lock that was notified bounds the rate of its looks (core/change.h): a
 * server that sends messages without end has no more effect than that.
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
    struct watch *next; /* of the lock's next key */
    redlock_lock *lock; /* NULL: forgotten */
    struct key *keys;   /* a reference to the lock's keys, of which ... */
    const struct key *key;
    uint32_t armed;   /* mask: nodes that have not told of a change since they were asked */
    uint32_t pending; /* mask: nodes whose answer is due */
    uint32_t again;   /* mask: nodes to be asked again then */
    uint32_t replies; /* number of replies to come */
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
    watch->armed &= ~node;
    watch->watches->listener->on_key_changed(watch->lock, node);
}

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

static void put_watch(struct watch *watch) {
    if (watch->lock == NULL && watch->replies == 0) {
        key_drop(watch->keys);
        pool_put(&watch->watches->pool, watch);
    }
}

static void ask_to_watch(struct watch *watch, struct node *node) {
    uint32_t bit = node_bit(node);
    if (watch->pending & bit) {
        watch->again |= bit;
        return;
    }
    unsigned sent =
        channel_watch(&node->channel, &watch->requests, watch->key->bytes, watch->key->length);
    watch->replies += sent;
    if (sent == 2) {
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
    if (reply != NULL && reply->type == REPLY_ERROR) {
        tracking_refused(&node->channel.tracking, "+client|caching", reply);
    }
    put_watch(watch);
}

/* Returns whether a key is not as the node's latest vote said, by the value that it has now. */
static bool has_changed(const struct watch *watch, uint32_t node, const struct reply *reply) {
    const redlock_lock *lock = watch->lock;
    if (reply->type != REPLY_STRING || lock->flight == NULL) {
        return false;
    }
    bool is_ours = reply->length == TOKEN_LENGTH &&
                   memcmp(reply->text, lock->flight->token, TOKEN_LENGTH) == 0;
    redlock_vote vote = (redlock_vote)lock->flight->round.votes[node];
    return vote == REDLOCK_VOTE_GRANTED ? !is_ours
                                        : vote == REDLOCK_VOTE_DENIED && reply->length == 0;
}

static void take_look(struct watch *watch, struct node *node, const struct reply *reply) {
    uint32_t bit = node_bit(node);
    if (reply->type == REPLY_ERROR && reply_lacks_right(reply)) {
        tracking_refused(&node->channel.tracking, "+getrange", reply);
    } else if (watch->again & bit) {
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
    if (reply == NULL) {
        watch->again &= ~node_bit(node);
    } else if (watch->lock != NULL) {
        take_look(watch, node, reply);
    }
    put_watch(watch);
}

/* ---- the watches of a lock ---- */

/* Creates a watch for a key of a lock, in front of `next`. Returns NULL when out of memory. */
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

/* Gives a lock a watch for each key that a message can hold. Without memory it gets none. */
static void create_all(struct watches *watches, redlock_lock *lock) {
    for (const struct key *key = lock->key; key != NULL; key = key->next) {
        if (key->length > WAITERS_KEY_MAX) {
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
    if (first == NULL || first->keys != lock->key) { /* or a permit's */
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
