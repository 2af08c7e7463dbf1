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

/* Returns the number of calls of `command`; 0 if it is not listed, because it never ran. */
static uint64_t calls_of(const char *statistics, const char *command) {
    char title[64];
    const char *line;
    uint64_t calls = 0;

    snprintf(title, sizeof(title), "cmdstat_%s:calls=", command);
    line = strstr(statistics, title);
    if (line != NULL) {
        calls = strtoull(line + strlen(title), NULL, 10);
    }
    return calls;
}

uint64_t tally_renewals(struct masters *masters, size_t index) {
    char *statistics = masters_query(masters, index, "INFO commandstats");
    uint64_t renewals = calls_of(statistics, "pexpire");

    free(statistics);
    return renewals;
}

uint64_t tally_script_calls(struct masters *masters, size_t index) {
    char *statistics = masters_query(masters, index, "INFO commandstats");
    uint64_t calls = calls_of(statistics, "eval") + calls_of(statistics, "evalsha");

    free(statistics);
    return calls;
}

uint64_t tally_keys_left(struct masters *masters, size_t index) {
    return (uint64_t)masters_query_integer(masters, index, "EVAL %s 0", count_keys);
}
