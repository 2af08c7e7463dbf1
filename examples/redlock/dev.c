/*
 * `redlock dev`: throwaway masters. They are never restarted, so their memory lasts as long as they
 * do: "?durable=yes" says so, and spares clients the wait for their trust.
 */
#include "arguments.h"
#include "json.h"
#include "masters.h"
#include "nodes.h"
#include "tool.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 5
#define READY_LIMIT_MS 60000
#define LOOK_US 10000

/* Descriptors that suffice for the maximum number of masters; each server reserves 32. */
#define DESCRIPTORS 256
#define TEXT_OF(number) TEXT_OF_ITSELF(number)
#define TEXT_OF_ITSELF(number) #number

struct dev {
    struct event_base *base;
    redlock_client *client;
    struct event *look;
    struct masters *masters;
    char list[REDLOCK_MAX_NODES * 64]; /* the URIs, separated by commas */
    bool is_json;
    bool is_ready;
    unsigned looks;
    bool has_ended[REDLOCK_MAX_NODES]; /* masters whose end was reported */
    size_t ended;
};

/* Calls exit(), which ends the masters. */
static void on_end(evutil_socket_t signal_number, short what, void *arg) {
    (void)signal_number;
    (void)what;
    (void)arg;
    exit(TOOL_OK);
}

/* Reports the end of a master, which only this process notices at once. */
static void report_end(struct dev *dev, size_t index, const siginfo_t *about) {
    size_t count = masters_count(dev->masters);

    dev->has_ended[index] = true;
    dev->ended++;
    tool_say("dev: the master at %s has ended, %s %d; %zu of %zu run",
             masters_address(dev->masters, index),
             about->si_code == CLD_EXITED ? "with code" : "by signal", about->si_status,
             count - dev->ended, count);
    if (dev->ended == count) {
        exit(TOOL_FAILED);
    }
}

/* Checks which masters have ended, and leaves their status to masters_finish. */
static void on_child(evutil_socket_t signal_number, short what, void *arg) {
    struct dev *dev = arg;

    (void)signal_number;
    (void)what;
    for (size_t i = 0; i < masters_count(dev->masters); i++) {
        siginfo_t about = {0};

        if (!dev->has_ended[i] &&
            waitid(P_PID, (id_t)masters_pid(dev->masters, i), &about,
                   WEXITED | WNOHANG | WNOWAIT) == 0 &&
            about.si_pid != 0) {
            report_end(dev, i, &about);
        }
    }
}

/* Ends when nobody can read the output any longer. */
static void on_output(evutil_socket_t fd, short what, void *arg) {
    struct pollfd polled = {.fd = fd};

    (void)what;
    (void)arg;
    if (poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR)) {
        exit(TOOL_OK);
    }
}

/* Watches for the end of the reader: nobody else knows the masters. */
static void watch_output(const struct dev *dev) {
    struct stat about;

    if (fstat(STDOUT_FILENO, &about) == 0 && S_ISFIFO(about.st_mode)) {
        event_base_once(dev->base, STDOUT_FILENO, EV_READ, on_output, NULL, NULL);
    }
}

static bool is_trusted(const redlock_client *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);

    for (size_t i = 0; i < count; i++) {
        if (!infos[i].connected || !infos[i].trusted) {
            return false;
        }
    }
    return true;
}

/* Prints the line that a shell can read. */
static void report(const struct dev *dev) {
    if (dev->is_json) {
        struct json json = {.stream = stdout};

        json_begin(&json, NULL, '{');
        json_text(&json, "nodes", dev->list);
        json_number(&json, "pid", getpid());
        json_end(&json, '}');
        json_line(&json);
    } else {
        printf("export REDLOCK_NODES='%s'\n", dev->list);
    }
    if (tool_flush(TOOL_OK) != TOOL_OK) {
        exit(TOOL_SYSTEM);
    }
    if (!dev->is_json && isatty(STDERR_FILENO)) {
        fprintf(stderr, "%zu masters run until Ctrl-C. Copy the line above into another shell.\n",
                masters_count(dev->masters));
    }
}

/* Returns whether files can be created in the folder for temporary files. */
static bool has_folder(void) {
    const char *parent = getenv("TMPDIR");

    return access(parent != NULL && parent[0] != '\0' ? parent : "/tmp", W_OK | X_OK) == 0;
}

static bool has_descriptors(void) {
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS;
}

/* Returns advice about masters that did not start. They have printed why. */
static const char *advice(void) {
    if (!has_folder()) {
        return "set TMPDIR to a folder in which you may make files";
    }
    if (!has_descriptors()) {
        return "allow more descriptors, by ulimit -n " TEXT_OF(DESCRIPTORS);
    }
    return "where redis-server is missing: apt-get install redis-server, or name another program "
           "by REDLOCK_SERVER";
}

static void on_look(evutil_socket_t fd, short what, void *arg) {
    struct dev *dev = arg;

    (void)fd;
    (void)what;
    if (nodes_without_descriptor(dev->client) > 0) {
        tool_say("dev: %s; %s", strerror(EMFILE), advice());
        exit(TOOL_SYSTEM);
    }
    if (is_trusted(dev->client)) {
        event_del(dev->look);
        redlock_client_close(dev->client, NULL, NULL);
        report(dev);
        watch_output(dev);
    } else if (++dev->looks > READY_LIMIT_MS * 1000 / LOOK_US) {
        tool_say("dev: the masters cannot be trusted after a minute");
        exit(TOOL_NO_QUORUM);
    }
}

static void list_nodes(struct dev *dev, struct nodes *nodes) {
    size_t length = 0;

    for (size_t i = 0; i < masters_count(dev->masters); i++) {
        length +=
            (size_t)snprintf(dev->list + length, sizeof(dev->list) - length, "%s%s?durable=yes",
                             i == 0 ? "" : ",", masters_uri(dev->masters, i));
    }
    nodes_init(nodes);
    nodes_set(nodes, dev->list);
}

static size_t read_arguments(struct dev *dev, int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    struct arguments arguments = {argc, argv, "-", options, 0};
    char *end = NULL;
    unsigned long count = COUNT;

    for (int option; (option = arguments_next(&arguments)) != -1;) {
        if (option != 'j') {
            tool_usage("dev: the command line makes no sense");
        }
        dev->is_json = true;
    }
    if (optind < argc) {
        count = strtoul(argv[optind], &end, 10);
    }
    if (argc - optind > 1 || (end != NULL && *end != '\0') || count == 0 ||
        count > REDLOCK_MAX_NODES) {
        tool_usage("dev: the number of masters is 1 to %d", REDLOCK_MAX_NODES);
    }
    return count;
}

static void act_on(struct dev *dev, int signal_number, event_callback_fn act) {
    struct event *event = evsignal_new(dev->base, signal_number, act, dev);

    if (event == NULL || event_add(event, NULL) != 0) {
        tool_say("cannot make an event");
        exit(TOOL_SYSTEM);
    }
}

int dev_main(int argc, char **argv) {
    static const struct timeval interval = {.tv_usec = LOOK_US};
    static struct dev dev;
    struct nodes nodes;
    size_t count = read_arguments(&dev, argc, argv);

    dev.base = nodes_loop();
    act_on(&dev, SIGINT, on_end);
    act_on(&dev, SIGTERM, on_end);
    act_on(&dev, SIGHUP, on_end);
    signal(SIGPIPE, SIG_IGN); /* exit() must end the masters */
    dev.masters = masters_start(count, NULL);
    if (dev.masters == NULL) {
        tool_say("dev: no masters; %s", advice());
        return TOOL_SYSTEM;
    }
    act_on(&dev, SIGCHLD, on_child);
    on_child(SIGCHLD, 0, &dev); /* one may have ended already */
    list_nodes(&dev, &nodes);
    dev.client = nodes_connect(&nodes, dev.base, NULL);
    dev.look = event_new(dev.base, -1, EV_PERSIST, on_look, &dev);
    if (dev.look == NULL || event_add(dev.look, &interval) != 0) {
        tool_say("cannot make an event");
        return TOOL_SYSTEM;
    }
    return event_base_dispatch(dev.base) < 0 ? TOOL_SYSTEM : TOOL_OK;
}
