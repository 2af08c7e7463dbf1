#include "view.h"

#include "duration.h"
#include "paint.h"
#include "plain.h"

#include <inttypes.h>
#include <stdio.h>

static void print_holder(redlock_status status, const redlock_view *view) {
    char ttl[DURATION_TEXT];

    if (status != REDLOCK_OK) {
        printf("%sunknown: too few nodes answered%s", paint(PAINT_BAD), paint(PAINT_END));
    } else if (!view->held) {
        printf("%sfree%s", paint(PAINT_GOOD), paint(PAINT_END));
    } else if (view->readers > 0) {
        printf("shared by %" PRIu32 ", for %s at most", view->readers,
               duration_write(ttl, view->ttl_ms));
    } else {
        printf("held by %s%s%s, for %s at most", paint(PAINT_STRONG),
               view->owner[0] != '\0' ? view->owner : "a holder without a name", paint(PAINT_END),
               duration_write(ttl, view->ttl_ms));
    }
}

void view_line(const char *key, size_t length, redlock_status status, const redlock_view *view) {
    plain_print(stdout, key, length);
    fputs(": ", stdout);
    print_holder(status, view);
    if (view->fence != 0) {
        printf(", fence %" PRIu64, view->fence);
    }
    if (view->queue_length > 0) {
        printf(", %" PRIu32 " waiting", view->queue_length);
    }
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        const char *owner = view->queue_owners[i];

        printf("%s%s", i == 0 ? ": " : ", ", owner[0] != '\0' ? owner : "no name");
    }
    putchar('\n');
}

static void print_node(const redlock_node_view *node) {
    char ttl[DURATION_TEXT];

    if (!node->answered) {
        printf("  %-24s %sno answer%s: %s\n", node->node, paint(PAINT_BAD), paint(PAINT_END),
               node->detail);
        return;
    }
    printf("  %-24s ", node->node);
    if (!node->held) {
        printf("free %s", node->detail);
    } else if (node->readers > 0) {
        printf("shared by %" PRIu32 ", %s", node->readers, duration_write(ttl, node->ttl_ms));
    } else {
        printf("held%s%s, %s", node->owner[0] != '\0' ? " by " : "", node->owner,
               duration_write(ttl, node->ttl_ms));
    }
    if (node->fence != 0) {
        printf(", fence %" PRIu64, node->fence);
    }
    if (node->queue_length > 0) {
        printf(", %" PRIu32 " waiting", node->queue_length);
    }
    putchar('\n');
}

void view_nodes(const redlock_view *view) {
    for (size_t i = 0; i < view->node_count; i++) {
        print_node(&view->nodes[i]);
    }
}

/* Writes the members that are common to a node's answer and the quorum's result. */
static void holder_json(struct json *json, const char *owner, uint64_t ttl_ms, uint64_t fence,
                        uint32_t readers, uint32_t queue_length) {
    json_text(json, "owner", owner);
    json_number(json, "ttl_ms", (int64_t)ttl_ms);
    json_number(json, "fence", (int64_t)fence);
    json_number(json, "readers", readers);
    json_number(json, "queue_length", queue_length);
}

static void node_json(struct json *json, const redlock_node_view *node) {
    json_begin(json, NULL, '{');
    json_text(json, "node", node->node);
    json_bool(json, "answered", node->answered);
    json_bool(json, "held", node->held);
    holder_json(json, node->owner, node->ttl_ms, node->fence, node->readers, node->queue_length);
    json_text(json, "detail", node->detail);
    json_end(json, '}');
}

void view_json(struct json *json, const char *key, size_t length, redlock_status status,
               const redlock_view *view) {
    json_begin(json, NULL, '{');
    json_bytes(json, "key", key, length);
    json_bool(json, "known", status == REDLOCK_OK);
    json_bool(json, "held", view->held);
    holder_json(json, view->owner, view->ttl_ms, view->fence, view->readers, view->queue_length);
    json_begin(json, "queue_owners", '[');
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        json_text(json, NULL, view->queue_owners[i]);
    }
    json_end(json, ']');
    json_begin(json, "nodes", '[');
    for (size_t i = 0; i < view->node_count; i++) {
        node_json(json, &view->nodes[i]);
    }
    json_end(json, ']');
    json_end(json, '}');
}
