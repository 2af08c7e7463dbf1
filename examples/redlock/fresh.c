/*
 * `redlock nodes new`: writes the markers on masters that are certainly new, so that clients need
 * not observe them for max_ttl_ms before they count. A marker says since when a node's memory is
 * intact: always, on a server that never granted a lock.
 *
 * Refuses replicas, and nodes that have a key or a marker, because somebody may have had a lock
 * there. A lock that was lost with its server cannot be detected: the user must rule that out.
 */
#include "asker.h"
#include "direct.h"
#include "duration.h"
#include "json.h"
#include "plain.h"
#include "tool.h"

#include <inttypes.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHY_SIZE 240

/* Time since which the memory is intact, in us since 1970. */
#define SINCE_EVER "1"

struct candidate {
    redisContext *context; /* NULL: not reachable */
    char why[WHY_SIZE];    /* why the node is refused; "": it is not */
    const char *name;      /* name of the node */
    char run_id[48];
    int64_t uptime_ms;
};

/* Returns the number of keys in all databases; -1 if INFO's answer does not have it. */
static int64_t count_keys(const redisReply *info) {
    const char *section =
        info != NULL && info->type == REDIS_REPLY_STRING ? strstr(info->str, "# Keyspace") : NULL;
    const char *line = section;
    int64_t keys = section != NULL ? 0 : -1;

    while (line != NULL && (line = strchr(line, '\n')) != NULL) {
        int64_t number;

        line++;
        if (sscanf(line, "db%*u:keys=%" SCNd64, &number) == 1) {
            keys += number;
        }
    }
    return keys;
}

static void look(struct candidate *candidate, const char *text, uint64_t timeout_ms) {
    struct direct_uri uri;
    redisReply *info;
    int64_t keys;
    char role[32] = "";

    direct_read_uri(&uri, text);
    candidate->context = direct_connect(&uri, timeout_ms, candidate->why, sizeof(candidate->why));
    if (candidate->context == NULL) {
        return;
    }
    info = direct_ask(candidate->context, "INFO");
    keys = count_keys(info);
    direct_info(info, "role", role, sizeof(role));
    candidate->uptime_ms = 1000 * direct_info_number(info, "uptime_in_seconds", 0);
    if (!direct_info(info, "run_id", candidate->run_id, sizeof(candidate->run_id))) {
        snprintf(candidate->why, WHY_SIZE, "it does not answer INFO; its user needs +info");
    } else if (strcmp(role, "master") != 0) {
        snprintf(candidate->why, WHY_SIZE, "it is a replica");
    } else if (keys < 0) {
        snprintf(candidate->why, WHY_SIZE, "its INFO lacks the number of its keys");
    } else if (keys != 0) {
        snprintf(candidate->why, WHY_SIZE,
                 "its number of keys is %" PRId64
                 ", and it is not new: clients find out by themselves",
                 keys);
    }
    freeReplyObject(info);
}

/* Writes the marker, unless another client was faster. */
static void mark(struct candidate *candidate) {
    char marker[128];
    struct timespec now;
    redisReply *reply;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(marker, sizeof(marker), SINCE_EVER ":%" PRId64 ":%s",
             (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, candidate->run_id);
    reply = direct_ask(candidate->context, "SET " REDLOCK_MARKER_KEY " %s NX", marker);
    if (reply != NULL && reply->type == REDIS_REPLY_NIL) {
        snprintf(candidate->why, WHY_SIZE, "a client has written a marker just now");
    } else if (strcmp(direct_text(reply), "OK") != 0) {
        snprintf(candidate->why, WHY_SIZE, "%s", direct_failure(candidate->context, reply));
    }
    freeReplyObject(reply);
}

static bool is_confirmed(const struct asker *asker) {
    char answer[16] = "";

    if (asker->says_yes) {
        return true;
    }
    if (!isatty(STDIN_FILENO)) {
        tool_usage("nodes new: --yes is needed where nobody can be asked");
    }
    fprintf(stderr,
            "Has no client ever had a lock on these %zu servers, nor on others with these\n"
            "addresses within the last %" PRIu64 " s? Otherwise locks may be held twice. [yes/no] ",
            asker->nodes.count, asker->nodes.max_ttl_ms / 1000);
    return fgets(answer, sizeof(answer), stdin) != NULL && strcmp(answer, "yes\n") == 0;
}

static void report(const struct asker *asker, const struct candidate *candidate) {
    int64_t left_ms = (int64_t)asker->nodes.max_ttl_ms + 1000 - candidate->uptime_ms;
    char text[DURATION_TEXT];

    if (asker->is_json) {
        struct json json = {.stream = stdout};

        json_begin(&json, NULL, '{');
        json_text(&json, "node", candidate->name);
        json_bool(&json, "marked", candidate->why[0] == '\0');
        json_text(&json, "why", candidate->why);
        if (candidate->why[0] == '\0') {
            json_number(&json, "counts_in_ms", left_ms > 0 ? left_ms : 0);
        }
        json_end(&json, '}');
        json_line(&json);
    } else if (candidate->why[0] != '\0') {
        printf("%s: not marked: ", candidate->name);
        plain_print(stdout, candidate->why, strlen(candidate->why));
        putchar('\n');
    } else if (left_ms > 0) {
        printf("%s: marked; it counts in %s, when it has been up for long enough\n",
               candidate->name, duration_write(text, (uint64_t)left_ms));
    } else {
        printf("%s: marked; it counts\n", candidate->name);
    }
}

int nodes_main(int argc, char **argv) {
    static struct candidate candidates[REDLOCK_MAX_NODES];
    struct asker asker;
    int first = asker_read(&asker, argc, argv, ASKER_YES);
    size_t refused = 0;

    if (argc - first != 1 || strcmp(argv[first], "new") != 0) {
        tool_usage("nodes: it is \"redlock nodes new\"");
    }
    nodes_check(&asker.nodes);
    if (!is_confirmed(&asker)) {
        tool_say("nodes new: nothing was changed");
        return TOOL_FAILED;
    }
    for (size_t i = 0; i < asker.nodes.count; i++) {
        struct candidate *candidate = &candidates[i];

        candidate->name = asker.nodes.names[i];
        look(candidate, asker.nodes.uris[i], asker.nodes.direct_timeout_ms);
        if (candidate->why[0] == '\0') {
            mark(candidate);
        }
        refused += candidate->why[0] != '\0';
        report(&asker, candidate);
        if (candidate->context != NULL) {
            redisFree(candidate->context);
        }
    }
    return refused == 0 ? TOOL_OK : TOOL_FAILED;
}
