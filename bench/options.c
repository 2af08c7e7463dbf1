#define _GNU_SOURCE 1 /* getopt_long */

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <redlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define MAX_IN_FLIGHT 1000000
#define MAX_DURATION_S 3600

static const char help[] =
    "Usage: redlock-bench --spawn N | --nodes URI,URI,... [options]\n"
    "\n"
    "Measures uncontended cycles of acquire and release, each lock on a key of its own.\n"
    "\n"
    "  --spawn N         start N throwaway masters on this machine\n"
    "  --nodes URI,...   use these masters; a comma within a URI is written %2C\n"
    "  --in-flight C     locks that are acquired or released at a time (default 64)\n"
    "  --duration S      seconds to measure, after warming up (default 3)\n"
    "  --floor           send the same commands through plain hiredis, for comparison\n"
    "  --json            print one JSON object\n"
    "  --help            print this\n";

static const struct option known[] = {
    {"spawn", required_argument, NULL, 's'},
    {"nodes", required_argument, NULL, 'n'},
    {"in-flight", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, 'd'},
    {"floor", no_argument, NULL, 'f'},
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

    /* Not a number compares with nothing, and is refused as well. */
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
    case 'j':
        options->json = true;
        break;
    case 'h':
        fputs(help, stdout);
        exit(EXIT_SUCCESS);
    default:
        refuse("cannot use these arguments"); /* getopt has told which */
    }
}

void options_parse(struct options *options, int argc, char **argv) {
    int option;

    *options = (struct options){.in_flight = 64, .duration_s = 3};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        parse_option(options, option);
    }
    if (optind < argc) {
        refuse("\"%s\" is no option", argv[optind]);
    }
    if ((options->spawn > 0) == (options->nodes != NULL)) {
        refuse("give either --spawn or --nodes");
    }
}

void options_finish(struct options *options) {
    free(options->nodes);
    free(options->node_text);
    options->nodes = NULL;
    options->node_text = NULL;
}
