#include "options.h"

#include "nemesis.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_USAGE 2

static const char help[] =
    "Usage: redlock-chaos [options]\n"
    "\n"
    "Client processes contend for locks on five real masters while things go wrong, and a checker\n"
    "looks for two that held the same key. Ends with 1 when a promise was broken.\n"
    "\n"
    "  --seconds N      how long (default 60)\n"
    "  --clients K      client processes (default 5)\n"
    "  --keys N         keys that they contend for (default 3)\n"
    "  --ttl MS         the longest TTL; faults last 0.1 to 3 of it (default 500)\n"
    "  --seed S         of the schedule of faults (default: drawn from the clock)\n"
    "  --nemesis LIST   what goes wrong, with commas between:\n";
static const char more_help[] =
    "                   (*: breaks what the promise assumes: overlaps are counted, no failure.\n"
    "                   Default: all others)\n"
    "  --hosts          each master and client in a network namespace of its own (root, ip, tc)\n"
    "  --recheck        clients ask for the validity again right before they write\n"
    "  --json           print nothing but the JSON summary\n"
    "  --keep           keep the logs, and say where\n"
    "  --actions FILE   write what happened, for the checker of the proof (test/proof)\n"
    "  --help           print this\n";

static const struct option known[] = {
    {"seconds", required_argument, NULL, 's'},
    {"clients", required_argument, NULL, 'c'},
    {"keys", required_argument, NULL, 'k'},
    {"ttl", required_argument, NULL, 't'},
    {"seed", required_argument, NULL, 'e'},
    {"nemesis", required_argument, NULL, 'n'},
    {"hosts", no_argument, NULL, 'H'},
    {"recheck", no_argument, NULL, 'r'},
    {"json", no_argument, NULL, 'j'},
    {"keep", no_argument, NULL, 'K'},
    {"actions", required_argument, NULL, 'a'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static _Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void refuse(const char *format, ...) {
    va_list values;

    fputs("redlock-chaos: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("\nredlock-chaos --help lists the options.\n", stderr);
    exit(EXIT_USAGE);
}

static _Noreturn void print_help(void) {
    fputs(help, stdout);
    for (unsigned i = 0; i < NEMESES; i++) {
        printf("                     %s%s%s\n", nemeses[i].name,
               nemeses[i].keeps_assumptions ? "" : " *",
               nemeses[i].needs_proxy ? " (not with --hosts)" : "");
    }
    fputs(more_help, stdout);
    exit(EXIT_SUCCESS);
}

static uint64_t parse_number(const char *option, uint64_t min, uint64_t max) {
    char *end;
    unsigned long long number;

    errno = 0;
    number = strtoull(optarg, &end, 10);
    if (errno != 0 || optarg[0] < '0' || optarg[0] > '9' || *end != '\0' || number < min ||
        number > max) {
        refuse("%s: \"%s\" is not a number from %llu to %llu", option, optarg,
               (unsigned long long)min, (unsigned long long)max);
    }
    return number;
}

static uint32_t parse_nemeses(char *list) {
    uint32_t set = 0;

    while (list != NULL) {
        const char *name = strsep(&list, ",");
        enum nemesis nemesis = nemesis_named(name);

        if (nemesis == NEMESES) {
            refuse("--nemesis: there is no \"%s\"", name);
        }
        set |= NEMESIS_BIT(nemesis);
    }
    return set;
}

static void parse_option(struct options *options, int option) {
    switch (option) {
    case 's':
        options->seconds = parse_number("--seconds", 1, 10000000);
        break;
    case 'c':
        options->clients = (uint32_t)parse_number("--clients", 1, MAX_CLIENTS);
        break;
    case 'k':
        options->keys = (uint32_t)parse_number("--keys", 1, MAX_KEYS);
        break;
    case 't':
        options->ttl_ms = parse_number("--ttl", 100, 60000);
        break;
    case 'e':
        options->seed = parse_number("--seed", 0, UINT64_MAX);
        break;
    case 'n':
        options->nemeses = parse_nemeses(optarg);
        break;
    case 'H':
        options->hosts = true;
        break;
    case 'r':
        options->recheck = true;
        break;
    case 'j':
        options->json = true;
        break;
    case 'K':
        options->keep = true;
        break;
    case 'a':
        options->actions = optarg;
        break;
    case 'h':
        print_help();
    default:
        refuse("cannot use these arguments"); /* getopt has named the argument */
    }
}

static void check_nemeses(struct options *options) {
    if (options->nemeses == 0) {
        options->nemeses = nemeses_by_default(options->hosts);
    }
    for (unsigned i = 0; options->hosts && i < NEMESES; i++) {
        if (nemeses[i].needs_proxy && (options->nemeses & NEMESIS_BIT(i)) != 0) {
            refuse("--nemesis: %s cannot be done with --hosts", nemeses[i].name);
        }
    }
}

void options_parse(struct options *options, int argc, char **argv) {
    int option;

    *options = (struct options){
        .seconds = 60, .clients = 5, .keys = 3, .ttl_ms = 500, .seed = (uint64_t)time(NULL)};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        parse_option(options, option);
    }
    if (optind < argc) {
        refuse("\"%s\" is no option", argv[optind]);
    }
    check_nemeses(options);
}

bool options_keep_assumptions(const struct options *options) {
    for (unsigned i = 0; i < NEMESES; i++) {
        if (!nemeses[i].keeps_assumptions && (options->nemeses & NEMESIS_BIT(i)) != 0) {
            return false;
        }
    }
    return true;
}
