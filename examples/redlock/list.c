/*
 * `redlock list`: lists the locks whose names begin with a prefix. SCAN gives the names at each
 * node; then the library inspects each name. Locks come and go in the meantime: the list is a
 * snapshot.
 *
 * A key counts as a lock if its value is one of this library. Locks of foreign clients have any
 * value, like the strings in a cache. A key counts as one if it has an expiry, and the same value
 * at a quorum of the nodes: caches on independent masters are not alike.
 */
#include "answer.h"
#include "asker.h"
#include "direct.h"
#include "json.h"
#include "talk.h"
#include "tool.h"
#include "view.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOKEN_LENGTH 40
#define NAMES_MOST 10000
#define ROOM (2 * NAMES_MOST) /* room for names that other nodes reported already */
#define SCAN_MOST_MS 60000    /* time limit for one node */
#define WHY_SIZE 240

struct name {
    char *bytes;
    size_t length;
};

struct list {
    struct asker asker;
    struct json json;
    redisContext *contexts[REDLOCK_MAX_NODES]; /* NULL: not reached */
    char whys[REDLOCK_MAX_NODES][WHY_SIZE];    /* why a node did not list its names; "" */
    struct name names[ROOM];
    size_t count;
    size_t answered;         /* number of nodes that listed their names */
    bool is_cut;             /* whether there are more than NAMES_MOST */
    const struct name *name; /* name being inspected */
    int code;
};

/* Returns whether a value is this library's: a token, with or without an owner, or that of readers.
 */
static bool is_ours(const redisReply *value) {
    return value != NULL && value->type == REDIS_REPLY_STRING &&
           (strcmp(value->str, REDLOCK_SHARED_VALUE) == 0 ||
            (strspn(value->str, "0123456789abcdef") == TOKEN_LENGTH &&
             (value->str[TOKEN_LENGTH] == '\0' || value->str[TOKEN_LENGTH] == '/')));
}

static int compare(const void *one, const void *other) {
    const struct name *a = one;
    const struct name *b = other;
    size_t length = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, length);

    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* Sorts the names, removes duplicates, and keeps the first NAMES_MOST. */
static void sort(struct list *list) {
    size_t kept = 0;

    qsort(list->names, list->count, sizeof(list->names[0]), compare);
    for (size_t i = 0; i < list->count; i++) {
        bool is_duplicate = kept > 0 && compare(&list->names[kept - 1], &list->names[i]) == 0;

        if (is_duplicate || kept == NAMES_MOST) {
            list->is_cut = list->is_cut || !is_duplicate;
            free(list->names[i].bytes);
        } else {
            list->names[kept++] = list->names[i];
        }
    }
    list->count = kept;
}

static void add(struct list *list, const redisReply *key) {
    struct name *name;

    if (list->count == ROOM) {
        sort(list);
    }
    name = &list->names[list->count];
    name->bytes = malloc(key->len + 1);
    if (name->bytes == NULL) {
        tool_refused("memory");
    }
    memcpy(name->bytes, key->str, key->len);
    name->length = key->len;
    list->count++;
}

/* Sends a command with one key as its only argument for each key. Returns the replies. */
static redisReply **ask_each(redisContext *context, const char *command, redisReply *const *keys,
                             size_t count) {
    redisReply **replies = calloc(count + 1, sizeof(*replies));

    if (replies == NULL) {
        tool_refused("memory");
    }
    for (size_t i = 0; i < count; i++) {
        redisAppendCommandArgv(context, 2, (const char *[]){command, keys[i]->str},
                               (const size_t[]){strlen(command), keys[i]->len});
    }
    for (size_t i = 0; i < count; i++) {
        replies[i] = answer_next(context);
    }
    return replies;
}

static void free_each(redisReply **replies, size_t count) {
    for (size_t i = 0; i < count; i++) {
        freeReplyObject(replies[i]);
    }
    free(replies);
}

static bool is_string(const redisReply *reply) {
    return reply != NULL && reply->type == REDIS_REPLY_STRING;
}

static bool is_same(const redisReply *one, const redisReply *other) {
    return is_string(one) && is_string(other) && one->len == other->len &&
           memcmp(one->str, other->str, one->len) == 0;
}

/* Keeps only the keys that have an expiry, with their values. Returns their number. */
static size_t keep_expiring(redisContext *context, redisReply **keys, redisReply **values,
                            size_t count) {
    redisReply **expiries = ask_each(context, "PTTL", keys, count);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (expiries[i] != NULL && expiries[i]->type == REDIS_REPLY_INTEGER &&
            expiries[i]->integer > 0) {
            keys[kept] = keys[i];
            values[kept++] = values[i];
        }
    }
    free_each(expiries, count);
    return kept;
}

/* Adds the locks of foreign clients among some keys of a node that have foreign values. */
static void take_strange(struct list *list, size_t node, redisReply **keys, redisReply **values,
                         size_t count) {
    size_t kept = keep_expiring(list->contexts[node], keys, values, count);
    size_t *nodes = calloc(kept + 1, sizeof(*nodes));

    if (nodes == NULL) {
        tool_refused("memory");
    }
    for (size_t i = 0; kept > 0 && i < list->asker.nodes.count; i++) {
        if (list->contexts[i] != NULL) {
            redisReply **others = ask_each(list->contexts[i], "GET", keys, kept);

            for (size_t j = 0; j < kept; j++) {
                nodes[j] += is_same(values[j], others[j]);
            }
            free_each(others, kept);
        }
    }
    for (size_t i = 0; i < kept; i++) {
        if (nodes[i] >= nodes_quorum(&list->asker.nodes)) {
            add(list, keys[i]);
        }
    }
    free(nodes);
}

/* Adds the locks among some keys of a node. */
static void take_keys(struct list *list, size_t node, redisReply **keys, size_t count) {
    redisReply **values = ask_each(list->contexts[node], "GET", keys, count);
    redisReply **strange = calloc(count + 1, sizeof(*strange));
    size_t strange_count = 0;

    if (strange == NULL) {
        tool_refused("memory");
    }
    for (size_t i = 0; i < count; i++) {
        if (is_ours(values[i])) {
            add(list, keys[i]);
        } else if (is_string(values[i])) {
            keys[strange_count] = keys[i];
            strange[strange_count++] = values[i];
        }
    }
    take_strange(list, node, keys, strange, strange_count);
    free(strange);
    free_each(values, count);
}

/* Adds the locks of a page of keys from SCAN. */
static void take_page(struct list *list, size_t node, const redisReply *page) {
    redisReply **keys = calloc(page->elements + 1, sizeof(*keys));
    size_t count = 0;

    if (keys == NULL) {
        tool_refused("memory");
    }
    for (size_t i = 0; i < page->elements; i++) {
        if (is_string(page->element[i])) {
            keys[count++] = page->element[i];
        }
    }
    take_keys(list, node, keys, count);
    free(keys);
}

/* Writes a SCAN pattern for names that begin with the prefix. */
static void write_pattern(char *pattern, size_t size, const char *prefix) {
    size_t length = 0;

    for (; *prefix != '\0' && length + 3 < size; prefix++) {
        if (strchr("*?[]\\", *prefix) != NULL) {
            pattern[length++] = '\\';
        }
        pattern[length++] = *prefix;
    }
    snprintf(pattern + length, size - length, "*");
}

/* Reads the cursor of a page. Returns false if there is none. */
static bool take_cursor(const redisReply *page, uint64_t *cursor) {
    const char *text = direct_text(direct_element(page, 0));
    char *end;

    *cursor = strtoull(text, &end, 10);
    return end != text && *end == '\0';
}

/* Records and prints why a node does not list its names. Returns false. */
static bool fail(struct list *list, size_t node, const char *why) {
    snprintf(list->whys[node], WHY_SIZE, "%s", why[0] != '\0' ? why : DIRECT_NONSENSE);
    tool_say("list: %s: %s", list->asker.nodes.names[node], list->whys[node]);
    return false;
}

/*
 * Reads a page of a node's names and advances the cursor, to 0 at the end. Returns whether the
 * answer is well-formed.
 */
static bool read_page(struct list *list, size_t node, const char *pattern, uint64_t *cursor) {
    redisContext *context = list->contexts[node];
    redisReply *page =
        direct_ask(context, "SCAN %llu MATCH %s COUNT 1000", (unsigned long long)*cursor, pattern);
    const redisReply *keys = direct_element(page, 1);
    bool is_good = keys != NULL && keys->type == REDIS_REPLY_ARRAY && take_cursor(page, cursor);

    if (is_good) {
        take_page(list, node, keys);
    } else {
        fail(list, node, direct_failure(context, page));
    }
    freeReplyObject(page);
    return is_good;
}

/*
 * Reads all names of a node. Returns whether the node answered to the end. A cursor that repeats
 * would do so for ever; to detect this, each cursor is compared with an earlier one, which is
 * replaced after 1, 2, 4, ... pages (R. P. Brent, "An improved Monte Carlo factorization
 * algorithm", section 2).
 */
static bool scan(struct list *list, size_t node, const char *prefix) {
    uint64_t limit_ms = talk_now_ms() + SCAN_MOST_MS;
    uint64_t cursor = 0, past = 0;
    char pattern[1024];
    long pages = 0, next = 1;

    write_pattern(pattern, sizeof(pattern), prefix);
    do {
        if (!read_page(list, node, pattern, &cursor)) {
            return false;
        }
        if (cursor == 0) {
            return true;
        }
        if (cursor == past || talk_now_ms() > limit_ms) {
            char why[WHY_SIZE];

            snprintf(why, sizeof(why), "its keys have no end, after %ld pages", pages + 1);
            return fail(list, node, why);
        }
        pages++;
        if (pages == next) {
            past = cursor;
            next *= 2;
        }
    } while (true);
}

static void connect_to(struct list *list, size_t node) {
    struct direct_uri uri;
    char why[WHY_SIZE];

    direct_read_uri(&uri, list->asker.nodes.uris[node]);
    list->contexts[node] =
        direct_connect(&uri, list->asker.nodes.direct_timeout_ms, why, sizeof(why));
    if (list->contexts[node] == NULL) {
        fail(list, node, why);
    }
}

static void scan_all(struct list *list, const char *prefix) {
    size_t count = list->asker.nodes.count;

    for (size_t i = 0; i < count; i++) {
        connect_to(list, i);
    }
    for (size_t i = 0; i < count; i++) {
        list->answered += list->contexts[i] != NULL && scan(list, i, prefix);
    }
    for (size_t i = 0; i < count; i++) {
        if (list->contexts[i] != NULL) {
            redisFree(list->contexts[i]);
        }
    }
}

/* Prints a lock, unless it has ended in the meantime. */
static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct list *list = arg;

    if (status == REDLOCK_OK && !view->held) {
        return;
    }
    if (list->asker.is_json) {
        view_json(&list->json, list->name->bytes, list->name->length, status, view);
    } else {
        view_line(list->name->bytes, list->name->length, status, view);
    }
}

static void print_end(const struct list *list) {
    char text[32];
    time_t now = time(NULL);
    struct tm parts;

    strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&now, &parts));
    printf("A snapshot of %s, from %zu of %zu nodes; locks come and go meanwhile.\n", text,
           list->answered, list->asker.nodes.count);
    if (list->is_cut) {
        printf("There are more than %d: use a longer prefix.\n", NAMES_MOST);
    }
}

static void print_failures(struct list *list) {
    json_begin(&list->json, "failures", '[');
    for (size_t i = 0; i < list->asker.nodes.count; i++) {
        if (list->whys[i][0] != '\0') {
            json_begin(&list->json, NULL, '{');
            json_text(&list->json, "node", list->asker.nodes.names[i]);
            json_text(&list->json, "why", list->whys[i]);
            json_end(&list->json, '}');
        }
    }
    json_end(&list->json, ']');
}

static void report(struct list *list) {
    list->json.stream = stdout;
    if (list->asker.is_json) {
        json_begin(&list->json, NULL, '{');
        json_number(&list->json, "snapshot_ms", (int64_t)talk_wall_ms());
        json_number(&list->json, "nodes_answered", (int64_t)list->answered);
        print_failures(list);
        json_bool(&list->json, "cut", list->is_cut);
        json_begin(&list->json, "locks", '[');
    }
    for (size_t i = 0; i < list->count; i++) {
        list->name = &list->names[i];
        if (list->name->length > 0) {
            /* A name that the library refuses, such as a foreign "...::queue", is not a lock. */
            (void)asker_inspect(&list->asker, list->name->bytes, list->name->length, on_view, list);
        }
    }
    if (list->asker.is_json) {
        json_end(&list->json, ']');
        json_end(&list->json, '}');
        json_line(&list->json);
    } else {
        print_end(list);
    }
}

int list_main(int argc, char **argv) {
    static struct list list;
    int first = asker_read(&list.asker, argc, argv, 0);

    if (argc - first > 1) {
        tool_usage("list: one prefix, or none");
    }
    nodes_check(&list.asker.nodes);
    scan_all(&list, first < argc ? argv[first] : "");
    sort(&list);
    asker_connect(&list.asker);
    report(&list);
    asker_finish(&list.asker);
    for (size_t i = 0; i < list.count; i++) {
        free(list.names[i].bytes);
    }
    return list.answered >= nodes_quorum(&list.asker.nodes) ? TOOL_OK : TOOL_NO_QUORUM;
}
