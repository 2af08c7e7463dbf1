/* `redlock inspect` and `redlock watch`: show the holders of a key and its waiters. */
#include "asker.h"
#include "duration.h"
#include "json.h"
#include "naming.h"
#include "paint.h"
#include "talk.h"
#include "tool.h"
#include "view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct inspection {
    struct asker *asker;
    const char *key;
    int code;
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct inspection *inspection = arg;

    if (status != REDLOCK_OK) {
        inspection->code = TOOL_NO_QUORUM;
    }
    if (inspection->asker->is_json) {
        struct json json = {.stream = stdout};

        view_json(&json, inspection->key, strlen(inspection->key), status, view);
        json_line(&json);
    } else {
        view_line(inspection->key, strlen(inspection->key), status, view);
        view_nodes(view);
    }
}

int inspect_main(int argc, char **argv) {
    struct asker asker;
    struct inspection inspection = {.asker = &asker, .code = TOOL_OK};
    int first = asker_read(&asker, argc, argv, 0);

    if (first == argc) {
        tool_usage("inspect: which key?");
    }
    asker_connect(&asker);
    for (int i = first; i < argc; i++) {
        inspection.key = argv[i];
        if (!asker_inspect(&asker, argv[i], 0, on_view, &inspection)) {
            tool_usage("%s", naming_by_options(redlock_client_error(asker.client)));
        }
    }
    asker_finish(&asker);
    return inspection.code;
}

/* -------------------------------------------------------------------------------------- watching
 */

struct watch {
    struct asker *asker;
    const char *key;
    char last[512]; /* line printed last */
};

/* Writes everything whose change matters: no times, which always change. */
static void summarize(char *text, size_t size, redlock_status status, const redlock_view *view) {
    int length = snprintf(text, size, "%d %d %s %" PRIu64 " %" PRIu32 " %" PRIu32, status,
                          view->held, view->owner, view->fence, view->readers, view->queue_length);

    for (size_t i = 0; i < view->queue_owner_count && (size_t)length < size; i++) {
        length += snprintf(text + length, size - (size_t)length, " %s", view->queue_owners[i]);
    }
}

static void print_time(void) {
    char text[32];
    time_t now = time(NULL);
    struct tm parts;

    strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&now, &parts));
    printf("%s.%03d  ", text, (int)(talk_wall_ms() % 1000));
}

static void on_look(redlock_status status, const redlock_view *view, void *arg) {
    struct watch *watch = arg;
    char now[sizeof(watch->last)];

    summarize(now, sizeof(now), status, view);
    if (strcmp(now, watch->last) == 0) {
        return;
    }
    memcpy(watch->last, now, sizeof(now));
    if (watch->asker->is_json) {
        struct json json = {.stream = stdout};

        view_json(&json, watch->key, strlen(watch->key), status, view);
        json_line(&json);
    } else {
        print_time();
        view_line(watch->key, strlen(watch->key), status, view);
    }
    fflush(stdout);
}

int watch_main(int argc, char **argv) {
    struct asker asker;
    struct watch watch = {.asker = &asker};
    int first = asker_read(&asker, argc, argv, ASKER_INTERVAL);

    if (argc - first != 1) {
        tool_usage("watch: which key? One is needed");
    }
    watch.key = argv[first];
    asker_connect(&asker);
    while (!ferror(stdout)) {
        if (!asker_inspect(&asker, watch.key, 0, on_look, &watch)) {
            tool_usage("%s", naming_by_options(redlock_client_error(asker.client)));
        }
        asker_wait(&asker, asker.interval_ms);
    }
    return TOOL_OK;
}
