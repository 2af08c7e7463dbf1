#include "tally.h"

#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Counts the keys of load_format_key, without the fence counters, which outlive the keys.
 */
static const char count_keys[] = "local count = 0 "
                                 "for _, key in ipairs(redis.call('keys', 'redlock-bench:*')) do "
                                 "  if not string.find(key, '::fence', 1, true) then "
                                 "    count = count + 1 "
                                 "  end "
                                 "end "
                                 "return count";

/* Counts the entries of the wait queues of these keys. */
static const char count_entries[] = "local count = 0 "
                                    "for _, queue in ipairs(redis.call('keys', "
                                    "    'redlock-bench:*::queue')) do "
                                    "  count = count + redis.call('zcard', queue) "
                                    "end "
                                    "return count";

/* Adds the calls and the time of `command`; nothing if it is not listed, because it never ran. */
static void add_command(const char *statistics, const char *command, uint64_t *calls,
                        uint64_t *us) {
    char title[64];
    const char *line;

    snprintf(title, sizeof(title), "cmdstat_%s:", command);
    line = strstr(statistics, title);
    if (line != NULL) {
        uint64_t line_calls = 0, line_us = 0;

        sscanf(line + strlen(title), "calls=%" SCNu64 ",usec=%" SCNu64, &line_calls, &line_us);
        *calls += line_calls;
        *us += line_us;
    }
}

struct tally tally_read(struct masters *masters, size_t index) {
    char *statistics = masters_query(masters, index, "INFO commandstats");
    struct tally tally = {0};
    uint64_t pexpire_us = 0;

    add_command(statistics, "pexpire", &tally.renewals, &pexpire_us);
    add_command(statistics, "eval", &tally.script_calls, &tally.script_us);
    add_command(statistics, "evalsha", &tally.script_calls, &tally.script_us);
    free(statistics);
    return tally;
}

uint64_t tally_queued(struct masters *masters, size_t index) {
    return (uint64_t)masters_query_integer(masters, index, "EVAL %s 0", count_entries);
}

uint64_t tally_keys_left(struct masters *masters, size_t index) {
    return (uint64_t)masters_query_integer(masters, index, "EVAL %s 0", count_keys);
}

/* Returns the number in the line of this name; 0 if there is none. */
static double number_of(const char *information, const char *name) {
    char title[64];
    const char *line;

    snprintf(title, sizeof(title), "\n%s:", name);
    line = strstr(information, title);
    return line != NULL ? strtod(line + strlen(title), NULL) : 0;
}

void tally_read_load(struct masters *masters, size_t index, struct tally_load *load) {
    char *information = masters_query(masters, index, "INFO");

    load->commands = number_of(information, "total_commands_processed");
    load->bytes_in = number_of(information, "total_net_input_bytes");
    load->bytes_out = number_of(information, "total_net_output_bytes");
    load->cpu_us =
        (number_of(information, "used_cpu_user") + number_of(information, "used_cpu_sys")) * 1e6;
    free(information);
}

void tally_connections(struct masters *masters, size_t index, double *count, double *bytes) {
    char *list = masters_query(masters, index, "CLIENT LIST");
    char *rest = list;
    double sum = 0;

    *count = 0;
    while (rest != NULL) {
        const char *line = strsep(&rest, "\n");
        const char *memory = strstr(line, " tot-mem=");

        /* The query's own connection has no name. */
        if (memory != NULL && strstr(line, " name=redlock-bench ") != NULL) {
            sum += strtod(memory + strlen(" tot-mem="), NULL);
            ++*count;
        }
    }
    free(list);
    *bytes = sum / *count;
}
