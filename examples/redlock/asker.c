#include "asker.h"

#include "arguments.h"
#include "duration.h"
#include "naming.h"
#include "talk.h"
#include "tool.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MOST_MS 1000
#define LOOK_MS 5
#define INTERVAL_MS 500

enum choice { OPTION_JSON = 256, OPTION_YES, OPTION_PREFIX, OPTION_INTERVAL };

static const struct option options[] = {
    NODES_OPTIONS,
    {"json", no_argument, NULL, OPTION_JSON},
    {"yes", no_argument, NULL, OPTION_YES},
    {"prefix", required_argument, NULL, OPTION_PREFIX},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {NULL, 0, NULL, 0},
};

/* Handles an option that not all commands have. */
static void take_special(struct asker *asker, int option, int known, const char *command) {
    if (option == OPTION_YES && (known & ASKER_YES)) {
        asker->says_yes = true;
    } else if (option == OPTION_PREFIX && (known & ASKER_PREFIX)) {
        asker->prefix = optarg;
    } else if (option == OPTION_INTERVAL && (known & ASKER_INTERVAL)) {
        asker->interval_ms = duration_of_option("--interval", optarg);
        if (asker->interval_ms == 0) {
            tool_usage("--interval: 0 would ask without pause");
        }
    } else {
        tool_usage("%s: the command line makes no sense", command);
    }
}

int asker_read(struct asker *asker, int argc, char **argv, int known) {
    struct arguments arguments = {argc, argv, "-n:", options, 0};

    *asker = (struct asker){.interval_ms = INTERVAL_MS};
    nodes_init(&asker->nodes);
    for (int option; (option = arguments_next(&arguments)) != -1;) {
        if (option == OPTION_JSON) {
            asker->is_json = true;
        } else if (!nodes_take(&asker->nodes, option)) {
            take_special(asker, option, known, argv[0]);
        }
    }
    nodes_default(&asker->nodes);
    return optind;
}

static void on_time(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

void asker_wait(struct asker *asker, uint64_t ms) {
    struct timeval time = {.tv_sec = (time_t)(ms / 1000),
                           .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

    event_base_once(asker->base, -1, EV_TIMEOUT, on_time, asker->base, &time);
    event_base_dispatch(asker->base);
}

void asker_connect(struct asker *asker) {
    uint64_t limit_ms = talk_now_ms() + CONNECT_MOST_MS;

    asker->base = nodes_loop();
    asker->client = nodes_connect(&asker->nodes, asker->base, NULL);
    while (!nodes_are_known(asker->client) && talk_now_ms() < limit_ms) {
        asker_wait(asker, LOOK_MS);
    }
    if (nodes_lack_descriptors(&asker->nodes, asker->client)) {
        exit(TOOL_SYSTEM);
    }
}

struct question {
    struct asker *asker;
    redlock_inspect_cb *on_view;
    void *arg;
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct question *question = arg;

    question->on_view(status, view, question->arg);
    question->asker->is_done = true;
}

bool asker_inspect(struct asker *asker, const char *key, size_t length, redlock_inspect_cb *report,
                   void *arg) {
    struct question question = {.asker = asker, .on_view = report, .arg = arg};

    asker->is_done = false;
    switch (redlock_inspect(asker->client, key, length, on_view, &question)) {
    case REDLOCK_OK:
        break;
    case REDLOCK_EINVAL:
        return false;
    default:
        tool_say("%s", naming_by_options(redlock_client_error(asker->client)));
        exit(TOOL_SYSTEM);
    }
    while (!asker->is_done) {
        event_base_loop(asker->base, EVLOOP_ONCE);
    }
    return true;
}

static void on_closed(void *arg) {
    struct asker *asker = arg;

    asker->is_done = true;
}

void asker_finish(struct asker *asker) {
    asker->is_done = false;
    redlock_client_close(asker->client, on_closed, asker);
    while (!asker->is_done) {
        event_base_loop(asker->base, EVLOOP_ONCE);
    }
    event_base_free(asker->base);
}
