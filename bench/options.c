#define _GNU_SOURCE 1 /* getopt_long */

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define MAX_IN_FLIGHT 1000000
#define MAX_DURATION_S 3600
#define MAX_HELD 10000000
#define MAX_TTL_MS 3600000
#define MAX_CLIENTS 100000
#define MAX_PROCESSES 256
#define MAX_HOLD_US 60000000

#define DEFAULT_IN_FLIGHT 64
#define DEFAULT_TTL_MS 10000
#define DEFAULT_CLIENTS 16
#define DEFAULT_HOLD_US 1000

static const char help[] =
    "Usage: redlock-bench --spawn N | --nodes URI,URI,... [options]\n"
    "       redlock-bench --spawn N --held LOCKS [options]\n"
    "       redlock-bench --spawn N | --nodes URI,URI,... --contend [options]\n"
    "\n"
    "Measures uncontended cycles of acquire and release, each lock on a key of its own; or what "
    "it\n"
    "costs to hold many locks that renew themselves; or how keys that many want are handed over.\n"
    "\n"
    "  --spawn N         start N throwaway masters on this machine\n"
    "  --nodes URI,...   use these masters; a comma within a URI is written %2C\n"
    "  --duration S      seconds to measure, after warming up (default 3)\n"
    "  --json            print one JSON object\n"
    "  --help            print this\n"
    "\n"
    "Cycles:\n"
    "  --in-flight C     locks that are acquired or released at a time (default 64)\n"
    "  --floor           send the same commands through plain hiredis, for comparison\n"
    "\n"
    "Held locks:\n"
    "  --held LOCKS      hold so many, each on a key of its own\n"
    "  --ttl MS          their TTL (default 10000)\n"
    "  --fenced          they have fences\n"
    "  --busy MS         a third into the time, keep the loop busy for so long, once\n"
    "  --stop K          a third into the time, stop K of the masters for good\n"
    "\n"
    "Contention:\n"
    "  --contend         contenders acquire, hold and release keys, over and over\n"
    "  --clients M       contenders in all, spread evenly over processes and keys (default 16)\n"
    "  --processes P     processes, each with one client (default 1)\n"
    "  --keys K          keys (default 1)\n"
    "  --hold-us H       hold each for H microseconds (default 1000)\n"
    "  --poll            contenders ask again and again, instead of waiting in line\n"
    "  --ttl, --fenced   as above\n";

static const struct option known[] = {
    {"spawn", required_argument, NULL, 's'},
    {"nodes", required_argument, NULL, 'n'},
    {"in-flight", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, 'd'},
    {"floor", no_argument, NULL, 'f'},
    {"held", required_argument, NULL, 'H'},
    {"ttl", required_argument, NULL, 't'},
    {"busy", required_argument, NULL, 'b'},
    {"stop", required_argument, NULL, 'k'},
    {"fenced", no_argument, NULL, 'F'},
    {"contend", no_argument, NULL, 'C'},
    {"clients", required_argument, NULL, 'm'},
    {"processes", required_argument, NULL, 'p'},
    {"keys", required_argument, NULL, 'K'},
    {"hold-us", required_argument, NULL, 'u'},
    {"poll", no_argument, NULL, 'P'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static _Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void refuse(const char *format, ...) {
    va_list values;

    fputs("redlock-bench: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("\nredlock-bench --help lists the options.\n", stderr);
    exit(EXIT_USAGE);
}

static size_t parse_count(const char *option, const char *text, size_t max) {
    char *end;
    unsigned long long count;

    errno = 0;
    count = strtoull(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || count < 1 || count > max) {
        refuse("%s: \"%s\" is not a number from 1 to %zu", option, text, max);
    }
    return (size_t)count;
}

static double parse_duration(const char *text) {
    char *end;
    double seconds = strtod(text, &end);

    /* A NaN compares with no number, and is refused as well. */
    if (end == text || *end != '\0' || !(seconds > 0 && seconds <= MAX_DURATION_S)) {
        refuse("--duration: \"%s\" is not a number of seconds up to %d", text, MAX_DURATION_S);
    }
    return seconds;
}

static void parse_nodes(struct options *options, const char *text) {
    char *rest;

    options_finish(options);
    options->node_text = strdup(text);
    options->nodes = calloc(REDLOCK_MAX_NODES, sizeof(*options->nodes));
    if (options->node_text == NULL || options->nodes == NULL) {
        refuse("out of memory");
    }
    options->node_count = 0;
    rest = options->node_text;
    while (rest != NULL) {
        const char *node = strsep(&rest, ",");

        if (node[0] == '\0') {
            refuse("--nodes: \"%s\" names an empty node", text);
        }
        if (options->node_count == REDLOCK_MAX_NODES) {
            refuse("--nodes: more than %d nodes", REDLOCK_MAX_NODES);
        }
        options->nodes[options->node_count++] = node;
    }
}

static void parse_option(struct options *options, int option) {
    switch (option) {
    case 's':
        options->spawn = parse_count("--spawn", optarg, REDLOCK_MAX_NODES);
        break;
    case 'n':
        parse_nodes(options, optarg);
        break;
    case 'c':
        options->in_flight = parse_count("--in-flight", optarg, MAX_IN_FLIGHT);
        break;
    case 'd':
        options->duration_s = parse_duration(optarg);
        break;
    case 'f':
        options->floor = true;
        break;
    case 'H':
        options->held = parse_count("--held", optarg, MAX_HELD);
        break;
    case 't':
        options->ttl_ms = parse_count("--ttl", optarg, MAX_TTL_MS);
        break;
    case 'b':
        options->busy_ms = parse_count("--busy", optarg, (size_t)MAX_DURATION_S * 1000);
        break;
    case 'k':
        options->stop = parse_count("--stop", optarg, REDLOCK_MAX_NODES - 1);
        break;
    case 'F':
        options->fenced = true;
        break;
    case 'C':
        options->contend = true;
        break;
    case 'm':
        options->clients = parse_count("--clients", optarg, MAX_CLIENTS);
        break;
    case 'p':
        options->processes = parse_count("--processes", optarg, MAX_PROCESSES);
        break;
    case 'K':
        options->keys = parse_count("--keys", optarg, MAX_CLIENTS);
        break;
    case 'u':
        options->hold_us = parse_count("--hold-us", optarg, MAX_HOLD_US);
        break;
    case 'P':
        options->poll = true;
        break;
    case 'j':
        options->json = true;
        break;
    case 'h':
        fputs(help, stdout);
        exit(EXIT_SUCCESS);
    default:
        refuse("cannot use these arguments"); /* getopt has named the argument at fault */
    }
}

/* The modes, as bits. */
enum mode { CYCLES = 1, HELD = 2, CONTEND = 4 };

static const char *modes_in_words(unsigned modes) {
    switch (modes) {
    case HELD:
        return "--held";
    case CONTEND:
        return "--contend";
    default:
        return "--held or --contend";
    }
}

/* Refuses an option that was given, and that the mode does not have. */
static void check_use(enum mode mode, const char *option, bool given, unsigned modes) {
    if (!given || (modes & mode) != 0) {
        return;
    }
    if (mode == CYCLES) {
        refuse("%s goes with %s alone", option, modes_in_words(modes));
    }
    refuse("%s does not go with %s", option, modes_in_words(mode));
}

static void check_uses(const struct options *options, enum mode mode) {
    check_use(mode, "--nodes", options->nodes != NULL, CYCLES | CONTEND);
    check_use(mode, "--in-flight", options->in_flight > 0, CYCLES);
    check_use(mode, "--floor", options->floor, CYCLES);
    check_use(mode, "--held", options->held > 0, HELD);
    check_use(mode, "--ttl", options->ttl_ms > 0, HELD | CONTEND);
    check_use(mode, "--fenced", options->fenced, HELD | CONTEND);
    check_use(mode, "--busy", options->busy_ms > 0, HELD);
    check_use(mode, "--stop", options->stop > 0, HELD);
    check_use(mode, "--clients", options->clients > 0, CONTEND);
    check_use(mode, "--processes", options->processes > 0, CONTEND);
    check_use(mode, "--keys", options->keys > 0, CONTEND);
    check_use(mode, "--hold-us", options->hold_us > 0, CONTEND);
    check_use(mode, "--poll", options->poll, CONTEND);
}

static void check_held(const struct options *options) {
    if (options->busy_ms > 0 && options->stop > 0) {
        refuse("--busy does not go with --stop");
    }
    if (options->stop >= options->spawn) {
        refuse("--stop: %zu of %zu masters leave none", options->stop, options->spawn);
    }
    if ((double)options->busy_ms / 1e3 >= options->duration_s * 2 / 3) {
        refuse("--busy: %" PRIu64 " ms are not over within --duration", options->busy_ms);
    }
}

/* Every process and every key has a contender. */
static void check_contend(const struct options *options) {
    if (options->processes > options->clients) {
        refuse("--processes: %zu are more than the %zu of --clients", options->processes,
               options->clients);
    }
    if (options->keys > options->clients) {
        refuse("--keys: %zu are more than the %zu of --clients", options->keys, options->clients);
    }
}

static size_t or_default(size_t value, size_t otherwise) {
    return value > 0 ? value : otherwise;
}

static void set_defaults(struct options *options) {
    options->in_flight = or_default(options->in_flight, DEFAULT_IN_FLIGHT);
    options->ttl_ms = or_default(options->ttl_ms, DEFAULT_TTL_MS);
    options->clients = or_default(options->clients, DEFAULT_CLIENTS);
    options->processes = or_default(options->processes, 1);
    options->keys = or_default(options->keys, 1);
    options->hold_us = or_default(options->hold_us, DEFAULT_HOLD_US);
}

static enum mode mode_of(const struct options *options) {
    if (options->contend) {
        return CONTEND;
    }
    return options->held > 0 ? HELD : CYCLES;
}

void options_parse(struct options *options, int argc, char **argv) {
    int option;

    *options = (struct options){.duration_s = 3};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        parse_option(options, option);
    }
    if (optind < argc) {
        refuse("\"%s\" is no option", argv[optind]);
    }
    if ((options->spawn > 0) == (options->nodes != NULL)) {
        refuse("give either --spawn or --nodes");
    }
    check_uses(options, mode_of(options));
    set_defaults(options);
    if (options->contend) {
        check_contend(options);
    } else if (options->held > 0) {
        check_held(options);
    }
}

void options_finish(struct options *options) {
    free(options->nodes);
    free(options->node_text);
    options->nodes = NULL;
    options->node_text = NULL;
}
