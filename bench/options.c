#define _GNU_SOURCE 1 /* getopt_long */

#include "memory.h"
#include "options_check.h"
#include "outer.h"

#include <errno.h>
#include <getopt.h>
#include <redlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define MAX_IN_FLIGHT 100000
#define MAX_DURATION_S 3600
#define MAX_CYCLES 1000000000
#define MAX_HELD 10000000
#define MAX_TTL_MS 3600000
#define MAX_NODE_TIMEOUT_MS 60000
#define MAX_CLIENTS 100000
#define MAX_PROCESSES 2048
#define MAX_HOLD_US 60000000
#define MAX_RATE 10000000
#define MAX_CROWD 10000
#define MAX_THREADS 256
#define MAX_KEYS 10000000
#define MAX_EXPONENT 10
#define MAX_DELAY_MS 60000

#define DEFAULT_IN_FLIGHT 64
#define DEFAULT_TTL_MS 10000
#define DEFAULT_DURATION_S 3
#define DEFAULT_CLIENTS 16
#define DEFAULT_HOLD_US 1000
#define DEFAULT_EXPONENT 0.99
#define DEFAULT_LATE_MS 200

static const char help[] =
    "Usage: redlock-bench --spawn N | --nodes URI,URI,... [options]\n"
    "       redlock-bench --spawn N --held LOCKS [options]\n"
    "       redlock-bench --spawn N | --nodes URI,URI,... --contend [options]\n"
    "       redlock-bench --spawn N --mixed WAITERS [options]\n"
    "       redlock-bench --spawn N --fleet CLIENTS [options]\n"
    "\n"
    "Measures uncontended cycles of acquire and release, each lock on a key of its own; or what "
    "it\n"
    "costs to hold many locks that renew themselves; or how contended keys are handed over; or "
    "how\n"
    "cycles slow down while other clients wait.\n"
    "\n"
    "  --spawn N         start N throwaway masters on this machine\n"
    "  --null-masters    those cost next to nothing, store nothing, and grant everything\n"
    "  --nodes URI,...   use these masters; a comma within a URI is written %2C\n"
    "  --duration S      seconds to measure, after warming up (default 3)\n"
    "  --rtt MS[,MS...]  add this round trip between client and masters: one value for all, or "
    "one\n"
    "                    for each\n"
    "  --jitter MS       delay each piece of bytes further, by a random time up to MS\n"
    "  --late PERCENT[:MS]\n"
    "                    this share of the pieces is late by MS (default 200)\n"
    "  --json            print one JSON object\n"
    "  --help            print this\n"
    "  --version         print the version\n"
    "\n";

static const char help_of_modes[] =
    "Cycles:\n"
    "  --in-flight C     locks that are acquired, held or released at a time (default 64)\n"
    "  --rate R          begin R cycles per second, however long they take; latencies count\n"
    "                    from the instant when each was due. Otherwise each cycle follows one\n"
    "                    that has ended\n"
    "  --keys KEYS       unique (default): no two locks want one key; uniform:K: each wants one\n"
    "                    of K keys, and queues for it; zipf:K or zipf:K:EXPONENT: some keys are\n"
    "                    wanted more often (exponent 0.99)\n"
    "  --hold-us H       hold each lock for H microseconds (default 0)\n"
    "  --ttl MS          TTL of the locks (default 10000)\n"
    "  --node-timeout MS time that a master has to answer, as on a machine that stalls (default:\n"
    "                    it follows the answers, at least 250)\n"
    "  --fenced          they have fences\n"
    "  --mode MODE       exclusive (default), reader or writer\n"
    "  --threads T       T threads, each with a loop, a client and --in-flight locks of its own\n"
    "  --loop LOOP       run the library on uv (libuv), ev (libev), glib, sd (sd-event) or epoll, "
    "in\n"
    "                    place of libevent\n"
    "  --mt N            N (to 256) threads share one client (redlock/mt.h) and block, each\n"
    "                    with one lock at a time; 0: no thread blocks, and callbacks keep\n"
    "                    --in-flight locks in progress\n"
    "  --cycles N        run N cycles, failed ones included, without warming up, in\n"
    "                    place of --duration\n"
    "  --floor [KIND]    for comparison: stock (default), the same commands through plain\n"
    "                    hiredis; or epoll, fewer commands and no library\n"
    "\n"
    "Held locks:\n"
    "  --held LOCKS      number of locks to hold, each on a key of its own\n"
    "  --ttl, --node-timeout, --fenced\n"
    "                    as above\n"
    "  --busy MS         a third into the time, keep the loop busy for MS milliseconds, once\n"
    "  --stop K          a third into the time, stop K of the masters for good\n"
    "\n"
    "Contention:\n"
    "  --contend         contenders acquire, hold and release keys, over and over\n"
    "  --clients M       contenders in all, spread evenly over processes and keys (default 16)\n"
    "  --processes P     processes, each with one client (default 1)\n"
    "  --keys K          keys (default 1)\n"
    "  --hold-us H       hold each for H microseconds (default 1000)\n"
    "  --poll            contenders retry until they get the lock, instead of queueing\n"
    "  --ttl, --node-timeout, --fenced\n"
    "                    as above\n"
    "\n"
    "Cycles beside waiters:\n"
    "  --mixed WAITERS   measure cycles before, while and after so many other clients wait for a\n"
    "                    key that no cycle uses; medians of five rounds\n"
    "  --in-flight, --ttl, --node-timeout, --fenced\n"
    "                    as above\n"
    "\n"
    "Many clients:\n"
    "  --fleet CLIENTS   measure what so many clients cost a master: to connect, idle, working,\n"
    "                    holding, waiting, idle after that, and when the master restarts\n"
    "  --working PERCENT share of the clients that work (default 100)\n"
    "  --rate R          cycles per second of each client that works (default 1)\n"
    "  --ttl, --node-timeout\n"
    "                    as above\n";

static const struct option known[] = {
    {"spawn", required_argument, NULL, 's'},
    {"nodes", required_argument, NULL, 'n'},
    {"in-flight", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, 'd'},
    {"cycles", required_argument, NULL, 'N'},
    {"null-masters", no_argument, NULL, 'z'},
    {"rate", required_argument, NULL, 'r'},
    {"mode", required_argument, NULL, 'M'},
    {"threads", required_argument, NULL, 'T'},
    {"floor", optional_argument, NULL, 'f'},
    {"loop", required_argument, NULL, 'O'},
    {"mt", required_argument, NULL, 'A'},
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
    {"node-timeout", required_argument, NULL, 'o'},
    {"rtt", required_argument, NULL, 'R'},
    {"jitter", required_argument, NULL, 'J'},
    {"late", required_argument, NULL, 'L'},
    {"mixed", required_argument, NULL, 'x'},
    {"fleet", required_argument, NULL, 'l'},
    {"working", required_argument, NULL, 'w'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

void options_refuse(const char *format, ...) {
    va_list values;

    fputs("redlock-bench: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("\nredlock-bench --help lists the options.\n", stderr);
    exit(EXIT_USAGE);
}

static size_t parse_number(const char *option, const char *text, size_t min, size_t max) {
    char *end;
    unsigned long long number;

    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || number < min ||
        number > max) {
        options_refuse("%s: \"%s\" is not a number from %zu to %zu", option, text, min, max);
    }
    return (size_t)number;
}

static size_t parse_count(const char *option, const char *text, size_t max) {
    return parse_number(option, text, 1, max);
}

static double parse_duration(const char *text) {
    char *end;
    double seconds = strtod(text, &end);

    /* NaN fails every comparison, and is refused as well. */
    if (end == text || *end != '\0' || !(seconds > 0 && seconds <= MAX_DURATION_S)) {
        options_refuse("--duration: \"%s\" is not a number of seconds up to %d", text,
                       MAX_DURATION_S);
    }
    return seconds;
}

static void parse_nodes(struct options *options, const char *text) {
    char *rest;

    options_finish(options);
    options->node_text = strdup(text);
    options->nodes = memory_take(REDLOCK_MAX_NODES, sizeof(*options->nodes));
    if (options->node_text == NULL) {
        memory_end();
    }
    options->node_count = 0;
    rest = options->node_text;
    while (rest != NULL) {
        const char *node = strsep(&rest, ",");

        if (node[0] == '\0') {
            options_refuse("--nodes: \"%s\" names an empty node", text);
        }
        if (options->node_count == REDLOCK_MAX_NODES) {
            options_refuse("--nodes: more than %d nodes", REDLOCK_MAX_NODES);
        }
        options->nodes[options->node_count++] = node;
    }
}

/* Returns the next argument as the optional value of an option; NULL: none. */
static const char *word_that_follows(int argc, char **argv) {
    return optind < argc && argv[optind][0] != '-' ? argv[optind++] : NULL;
}

static enum options_load parse_floor(const char *text) {
    if (text == NULL || strcmp(text, "stock") == 0) {
        return LOAD_STOCK;
    }
    if (strcmp(text, "epoll") != 0) {
        options_refuse("--floor: \"%s\" is neither stock nor epoll", text);
    }
    return LOAD_EPOLL;
}

static const struct outer_kind *parse_loop(const char *text) {
    const struct outer_kind *kind = outer_find(text);

    if (kind == NULL) {
        options_refuse("--loop: \"%s\" is neither uv, ev, glib, sd nor epoll", text);
    }
    if (!kind->is_built) {
        options_refuse("--loop %s: redlock-bench was built without %s", text, kind->library);
    }
    return kind;
}

static redlock_mode parse_mode(const char *text) {
    static const char *const names[] = {[REDLOCK_EXCLUSIVE] = "exclusive",
                                        [REDLOCK_READER] = "reader",
                                        [REDLOCK_WRITER] = "writer"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            return (redlock_mode)i;
        }
    }
    options_refuse("--mode: \"%s\" is neither exclusive, reader nor writer", text);
}

/* Reads what follows the number of keys of a Zipf distribution: nothing or ":EXPONENT". */
static double parse_exponent(const char *keys, const char *text) {
    char *end;
    double exponent;

    if (text[0] == '\0') {
        return DEFAULT_EXPONENT;
    }
    exponent = strtod(text + 1, &end);
    if (text[0] != ':' || end == text + 1 || *end != '\0' ||
        !(exponent >= 0 && exponent <= MAX_EXPONENT)) {
        options_refuse("--keys: \"%s\" has no exponent from 0 to %d", keys, MAX_EXPONENT);
    }
    return exponent;
}

/* Reads a number of keys, or a distribution and the number after it. */
static void parse_keys(struct options *options, const char *text) {
    const char *number = strchr(text, ':');
    char digits[16] = "";

    options->spread_text = text;
    if (strcmp(text, "unique") == 0) {
        return;
    }
    if (number == NULL) {
        options->spread_text = NULL;
        options->keys = parse_count("--keys", text, MAX_CLIENTS);
        return;
    }
    number++;
    snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(number, ":"), number);
    options->spread.count = parse_count("--keys", digits, MAX_KEYS);
    number += strcspn(number, ":");
    if (strncmp(text, "uniform:", 8) == 0 && number[0] == '\0') {
        options->spread.kind = KEYS_UNIFORM;
    } else if (strncmp(text, "zipf:", 5) == 0) {
        options->spread.kind = KEYS_ZIPF;
        options->spread.exponent = parse_exponent(text, number);
    } else {
        options_refuse("--keys: \"%s\" is neither unique, uniform:K nor zipf:K", text);
    }
}

/*
 * Parses a number of at most `max`, which ends at `end_char` or at the end of the text. Returns the
 * text from there.
 */
static const char *parse_real(double *value, const char *text, char end_char, double max) {
    char *end;

    *value = strtod(text, &end);
    /* strtod also takes blanks, signs, "inf" and "nan". */
    if ((text[0] != '.' && (text[0] < '0' || text[0] > '9')) || !(*value >= 0 && *value <= max) ||
        (*end != end_char && *end != '\0')) {
        return NULL;
    }
    return end;
}

static double parse_ms(const char *option, const char *text) {
    double ms;

    if (parse_real(&ms, text, '\0', MAX_DELAY_MS) == NULL) {
        options_refuse("%s: \"%s\" is not a number of ms from 0 to %d", option, text, MAX_DELAY_MS);
    }
    return ms;
}

static void parse_rtt(struct options *options, const char *text) {
    struct relay_delays *delays = &options->delays;
    const char *rest = text;

    options->rtt_text = text;
    delays->rtt_count = 0;
    for (;;) {
        if (delays->rtt_count == REDLOCK_MAX_NODES) {
            options_refuse("--rtt: more than %d values", REDLOCK_MAX_NODES);
        }
        rest = parse_real(&delays->rtt_ms[delays->rtt_count++], rest, ',', MAX_DELAY_MS);
        if (rest == NULL) {
            options_refuse("--rtt: \"%s\" is not a number of ms from 0 to %d, or a list of them",
                           text, MAX_DELAY_MS);
        }
        if (*rest++ == '\0') {
            return;
        }
    }
}

static void parse_late(struct options *options, const char *text) {
    const char *rest = parse_real(&options->delays.late_percent, text, ':', 100);

    if (rest == NULL) {
        options_refuse("--late: \"%s\" does not begin with a percentage from 0 to 100", text);
    }
    options->delays.late_ms = *rest == ':' ? parse_ms("--late", rest + 1) : DEFAULT_LATE_MS;
}

/*
 * The following functions parse the options of one or more modes, and return false for others.
 */
static bool parse_shared_option(struct options *options, int option) {
    switch (option) {
    case 's':
        options->spawn = parse_count("--spawn", optarg, REDLOCK_MAX_NODES);
        return true;
    case 'n':
        parse_nodes(options, optarg);
        return true;
    case 'z':
        options->null_masters = true;
        return true;
    case 'd':
        options->duration_s = parse_duration(optarg);
        return true;
    case 'j':
        options->json = true;
        return true;
    case 't':
        options->ttl_ms = parse_count("--ttl", optarg, MAX_TTL_MS);
        return true;
    case 'F':
        options->fenced = true;
        return true;
    case 'u':
        options->hold_us = parse_number("--hold-us", optarg, 0, MAX_HOLD_US);
        options->is_hold_given = true;
        return true;
    case 'K':
        parse_keys(options, optarg);
        return true;
    default:
        return false;
    }
}

static bool parse_relay_option(struct options *options, int option) {
    switch (option) {
    case 'R':
        parse_rtt(options, optarg);
        break;
    case 'J':
        options->delays.jitter_ms = parse_ms("--jitter", optarg);
        break;
    case 'L':
        parse_late(options, optarg);
        break;
    default:
        return false;
    }
    options->relayed = true;
    return true;
}

static bool parse_cycles_option(struct options *options, int option, int argc, char **argv) {
    switch (option) {
    case 'c':
        options->in_flight = parse_count("--in-flight", optarg, MAX_IN_FLIGHT);
        return true;
    case 'N':
        options->cycles = parse_count("--cycles", optarg, MAX_CYCLES);
        return true;
    case 'r':
        options->rate = parse_count("--rate", optarg, MAX_RATE);
        return true;
    case 'M':
        options->mode = parse_mode(optarg);
        return true;
    case 'O':
        options->loop = parse_loop(optarg);
        return true;
    case 'A':
        options->shares_client = true;
        options->blocking = parse_number("--mt", optarg, 0, MAX_THREADS);
        return true;
    case 'T':
        options->threads = parse_count("--threads", optarg, MAX_THREADS);
        return true;
    case 'f':
        options->load = parse_floor(optarg != NULL ? optarg : word_that_follows(argc, argv));
        return true;
    default:
        return false;
    }
}

static bool parse_held_option(struct options *options, int option) {
    switch (option) {
    case 'H':
        options->held = parse_count("--held", optarg, MAX_HELD);
        return true;
    case 'b':
        options->busy_ms = parse_count("--busy", optarg, (size_t)MAX_DURATION_S * 1000);
        return true;
    case 'k':
        options->stop = parse_count("--stop", optarg, REDLOCK_MAX_NODES - 1);
        return true;
    default:
        return false;
    }
}

static bool parse_contend_option(struct options *options, int option) {
    switch (option) {
    case 'C':
        options->contend = true;
        return true;
    case 'm':
        options->clients = parse_count("--clients", optarg, MAX_CLIENTS);
        return true;
    case 'p':
        options->processes = parse_count("--processes", optarg, MAX_PROCESSES);
        return true;
    case 'P':
        options->poll = true;
        return true;
    case 'o':
        options->node_timeout_ms = parse_count("--node-timeout", optarg, MAX_NODE_TIMEOUT_MS);
        return true;
    default:
        return false;
    }
}

static bool parse_crowd_option(struct options *options, int option) {
    switch (option) {
    case 'x':
        options->mixed = parse_count("--mixed", optarg, MAX_CROWD);
        return true;
    case 'l':
        options->fleet = parse_count("--fleet", optarg, MAX_CROWD);
        return true;
    case 'w':
        options->working = parse_count("--working", optarg, 100);
        return true;
    default:
        return false;
    }
}

static void parse_option(struct options *options, int option, int argc, char **argv) {
    if (option == 'h') {
        fputs(help, stdout);
        fputs(help_of_modes, stdout);
        exit(EXIT_SUCCESS);
    }
    if (option == 'V') {
        printf("redlock-bench %s\n", redlock_version());
        exit(EXIT_SUCCESS);
    }
    if (!parse_shared_option(options, option) && !parse_relay_option(options, option) &&
        !parse_cycles_option(options, option, argc, argv) && !parse_held_option(options, option) &&
        !parse_contend_option(options, option) && !parse_crowd_option(options, option)) {
        options_refuse("cannot use these arguments"); /* getopt has printed the invalid argument */
    }
}

static size_t or_default(size_t value, size_t otherwise) {
    return value > 0 ? value : otherwise;
}

static void set_defaults(struct options *options) {
    options->in_flight =
        or_default(options->in_flight, options->blocking > 0 ? 1 : DEFAULT_IN_FLIGHT);
    options->ttl_ms = or_default(options->ttl_ms, DEFAULT_TTL_MS);
    options->clients = or_default(options->clients, DEFAULT_CLIENTS);
    if (!(options->duration_s > 0)) {
        options->duration_s = DEFAULT_DURATION_S;
    }
    options->processes = or_default(options->processes, 1);
    options->keys = or_default(options->keys, 1);
    options->threads = or_default(options->threads, or_default(options->blocking, 1));
    options->working = or_default(options->working, 100);
    if (options->fleet > 0) {
        options->rate = or_default(options->rate, 1);
    }
    if (options->contend && !options->is_hold_given) {
        options->hold_us = DEFAULT_HOLD_US;
    }
}

void options_parse(struct options *options, int argc, char **argv) {
    int option;

    *options = (struct options){0};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        parse_option(options, option, argc, argv);
    }
    if (optind < argc) {
        options_refuse("\"%s\" is no option", argv[optind]);
    }
    options_check_uses(options);
    set_defaults(options);
    options_check_values(options);
}

void options_finish(struct options *options) {
    free(options->nodes);
    free(options->node_text);
    options->nodes = NULL;
    options->node_text = NULL;
}
