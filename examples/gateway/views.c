#include "views.h"

#include "answer.h"
#include "gateway.h"
#include "locks.h"
#include "status.h"

#include <string.h>

static json_t *fence_json(uint64_t fence) {
    return fence == 0 ? json_null() : json_integer((json_int_t)fence);
}

json_t *hold_json(const struct hold *hold) {
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "key", hold->key, "owner", hold->owner,
                     "mode", lock_modes[hold->mode], "ttl_ms", (json_int_t)hold->ttl_ms,
                     "validity_ms", (json_int_t)redlock_validity_ms(hold->lock), "fence",
                     fence_json(redlock_fence(hold->lock)));
}

json_t *lock_json(const struct hold *hold) {
    json_t *lock = hold_json(hold);
    char id[HOLD_ID_SIZE];

    if (lock != NULL && json_object_set_new(lock, "id", json_string(hold_id(hold, id))) != 0) {
        json_decref(lock);
        return NULL;
    }
    return lock;
}

static const char *vote_name(redlock_vote vote) {
    static const char *const names[] = {
        [REDLOCK_VOTE_NONE] = "none",
        [REDLOCK_VOTE_GRANTED] = "granted",
        [REDLOCK_VOTE_DENIED] = "denied",
        [REDLOCK_VOTE_WRONG_TYPE] = "wrong_type",
        [REDLOCK_VOTE_NO_EXPIRY] = "no_expiry",
        [REDLOCK_VOTE_MISSING] = "missing",
        [REDLOCK_VOTE_ERROR] = "error",
        [REDLOCK_VOTE_TIMEOUT] = "timeout",
        [REDLOCK_VOTE_UNREACHABLE] = "unreachable",
        [REDLOCK_VOTE_REFUSED] = "refused",
        [REDLOCK_VOTE_BROKEN] = "broken",
        [REDLOCK_VOTE_UNTRUSTED] = "untrusted",
        [REDLOCK_VOTE_LATE] = "late",
    };

    return (size_t)vote < sizeof(names) / sizeof(names[0]) ? names[vote] : "none";
}

json_t *lock_votes(const redlock_lock *lock) {
    redlock_node_report reports[REDLOCK_MAX_NODES];
    size_t count = redlock_report(lock, reports, REDLOCK_MAX_NODES);
    json_t *nodes = json_array();

    for (size_t i = 0; i < count && i < REDLOCK_MAX_NODES; i++) {
        json_array_append_new(
            nodes, json_pack("{s:o, s:s, s:o}", "node", answer_text(reports[i].node), "answer",
                             vote_name(reports[i].vote), "detail", answer_text(reports[i].detail)));
    }
    return nodes;
}

json_t *view_nodes(const redlock_view *view) {
    json_t *nodes = json_array();

    for (size_t i = 0; i < view->node_count; i++) {
        const redlock_node_view *node = &view->nodes[i];

        json_array_append_new(nodes, json_pack("{s:o, s:s, s:o}", "node", answer_text(node->node),
                                               "answer",
                                               !node->answered ? "none"
                                               : node->held    ? "held"
                                                               : "free",
                                               "detail", answer_text(node->detail)));
    }
    return nodes;
}

/* Describes the holds of this gateway on the key, with the owners that their clients named. */
static json_t *holds_of(const struct gateway *gateway, const char *key) {
    json_t *here = json_array();

    for (size_t i = 0; i < gateway->holds.limit && json_array_size(here) < STATUS_ROWS_MAX; i++) {
        const struct hold *hold = gateway->holds.slots[i];

        if (hold != NULL && hold->is_held && strcmp(hold->key, key) == 0) {
            json_array_append_new(here, hold_json(hold));
        }
    }
    return here;
}

static json_t *queue_of(const redlock_view *view) {
    json_t *owners = json_array();

    for (size_t i = 0; i < view->queue_owner_count; i++) {
        json_array_append_new(owners, answer_text(view->queue_owners[i]));
    }
    return owners;
}

json_t *view_json(const struct gateway *gateway, const char *key, const redlock_view *view) {
    return json_pack("{s:s, s:b, s:o, s:I, s:o, s:i, s:i, s:o, s:o, s:o}", "key", key, "held",
                     view->held, "owner", answer_text(view->owner), "ttl_ms",
                     (json_int_t)view->ttl_ms, "fence", fence_json(view->fence), "readers",
                     (int)view->readers, "queue_length", (int)view->queue_length, "queue_owners",
                     queue_of(view), "nodes", view_nodes(view), "here", holds_of(gateway, key));
}
