#include "checkup.h"

#include "duration.h"
#include "nodes.h"
#include "rights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READINGS 5
#define CLOCK_MOST_US 1000000
#define OLDEST_VERSION 5
#define SLOW_US 25000 /* the limit of the alert RedlockRoundTripsSlow */
#define FULL_PERCENT 90
#define VALUE 64

static uint64_t now_us(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ----------------------------------------------------------------------------- clock, round
 * trip */

/* Reads the answer of TIME: seconds since 1970 and microseconds. */
static bool read_time(const redisReply *reply, uint64_t *time_us) {
    uint64_t seconds = strtoull(direct_text(direct_element(reply, 0)), NULL, 10);

    *time_us = seconds * 1000000 + strtoull(direct_text(direct_element(reply, 1)), NULL, 10);
    return seconds > 0 && seconds <= UINT32_MAX;
}

/* Reads the server's clock several times, and keeps the reading with the shortest round trip. */
static void read_clock(struct checkup *checkup, redisContext *context) {
    uint64_t time_us;
    uint64_t sent = now_us(CLOCK_MONOTONIC);
    uint64_t wall = now_us(CLOCK_REALTIME);
    redisReply *reply = direct_ask(context, "TIME");
    uint64_t took = now_us(CLOCK_MONOTONIC) - sent;

    if (reply != NULL && (checkup->round_trip_us == 0 || took < checkup->round_trip_us)) {
        checkup->round_trip_us = took > 0 ? took : 1;
        if (read_time(reply, &time_us)) {
            checkup->clock_offset_us = (int64_t)(time_us - (wall + took / 2));
            checkup->knows_clock = true;
        }
    }
    freeReplyObject(reply);
}

static void check_clock(struct checkup *checkup, struct findings *findings, redisContext *context) {
    int64_t offset;

    for (int i = 0; i < READINGS && context->err == 0; i++) {
        read_clock(checkup, context);
    }
    if (checkup->round_trip_us == 0) {
        return;
    }
    bool is_slow = checkup->round_trip_us > SLOW_US;
    findings_add(findings, is_slow ? FINDING_WARNING : FINDING_GOOD,
                 is_slow ? "slow" : "round trip", "round trip %.2f ms%s",
                 (double)checkup->round_trip_us / 1000,
                 is_slow ? ": an acquisition takes as long, if a quorum is as slow" : "");
    if (!checkup->knows_clock) {
        return;
    }
    offset = checkup->clock_offset_us;
    if (llabs(offset) > CLOCK_MOST_US + (long long)checkup->round_trip_us) {
        findings_add(
            findings, FINDING_WARNING, "clock off",
            "its clock is off by %.1f s: let NTP set the clocks, slowly: a jump ends locks",
            (double)offset / 1e6);
    } else {
        findings_add(findings, FINDING_GOOD, "clock",
                     "its clock is off by %.2f ms, give or take %.2f", (double)offset / 1000,
                     (double)checkup->round_trip_us / 2000);
    }
}

/* -------------------------------------------------------------------------------------- its
 * INFO */

static void check_version(struct checkup *checkup, struct findings *findings,
                          const redisReply *info) {
    char *version = checkup->version;
    size_t size = sizeof(checkup->version);
    /* Valkey's redis_version is that of the Redis with which it is compatible. */
    bool is_valkey = direct_info(info, "valkey_version", version, size);

    if (!is_valkey && !direct_info(info, "redis_version", version, size)) {
        return;
    }
    if (atoi(version) < OLDEST_VERSION) {
        findings_add(findings, FINDING_WARNING, "old version", "version %s: 7 or later is tested",
                     version);
    } else {
        findings_add(findings, FINDING_GOOD, "version", "version %s%s", version,
                     is_valkey ? " of Valkey" : "");
    }
}

static void check_role(struct findings *findings, const redisReply *info) {
    char role[VALUE];

    if (direct_info(info, "role", role, sizeof(role)) && strcmp(role, "master") != 0) {
        findings_add(findings, FINDING_FAULT, "replica",
                     "it is a replica, whose votes never count: name its master instead");
    }
    if (direct_info_number(info, "cluster_enabled", 0) != 0) {
        findings_add(findings, FINDING_FAULT, "cluster",
                     "it is part of a cluster: name servers that are no cluster");
    }
}

static void check_uptime(const struct checkup *checkup, struct findings *findings,
                         const redisReply *info) {
    int64_t uptime_ms = 1000 * direct_info_number(info, "uptime_in_seconds", -1);
    int64_t left_ms = (int64_t)checkup->max_ttl_ms + 1000 - uptime_ms;
    char text[DURATION_TEXT];

    if (uptime_ms < 0 || checkup->uri.is_durable) {
        return;
    }
    if (left_ms > 0) {
        findings_add(findings, FINDING_FAULT, "young",
                     "it was started a moment ago, and does not count for %s more: wait",
                     duration_write(text, (uint64_t)left_ms));
    } else {
        findings_add(findings, FINDING_GOOD, "uptime", "it is up for %s",
                     duration_write(text, (uint64_t)uptime_ms));
    }
}

static bool says(redisContext *context, const char *setting, const char *value) {
    redisReply *reply = direct_ask(context, "CONFIG GET %s", setting);
    bool is_so = strcmp(direct_text(direct_element(reply, 1)), value) == 0;

    freeReplyObject(reply);
    return is_so;
}

static void check_persistence(const struct checkup *checkup, struct findings *findings,
                              redisContext *context, const redisReply *info) {
    char state[VALUE];
    bool has_log = direct_info_number(info, "aof_enabled", 0) != 0;

    if (direct_info_number(info, "loading", 0) != 0) {
        findings_add(findings, FINDING_FAULT, "loading", "it is still reading its data: wait");
    }
    if ((direct_info(info, "rdb_last_bgsave_status", state, sizeof(state)) &&
         strcmp(state, "ok") != 0) ||
        (direct_info(info, "aof_last_write_status", state, sizeof(state)) &&
         strcmp(state, "ok") != 0)) {
        findings_add(findings, FINDING_WARNING, "cannot save",
                     "it could not save its data: look at its disk, before it refuses writes");
    }
    if (checkup->uri.is_durable && !(has_log && says(context, "appendfsync", "always"))) {
        findings_add(findings, FINDING_WARNING, "not durable",
                     "its URI says durable=yes, but it does not write each change at once "
                     "(appendonly yes, appendfsync always): a restart may give locks away twice");
    } else {
        findings_add(findings, FINDING_GOOD, "persistence", "%s",
                     has_log ? "it has an append-only file"
                             : "it keeps nothing over a restart; "
                               "clients allow for that");
    }
}

static void check_memory(struct findings *findings, const redisReply *info) {
    char policy[VALUE] = "noeviction";
    int64_t most = direct_info_number(info, "maxmemory", 0);
    int64_t used = direct_info_number(info, "used_memory", 0);
    int64_t clients = direct_info_number(info, "connected_clients", 0);
    int64_t clients_most = direct_info_number(info, "maxclients", 0);

    direct_info(info, "maxmemory_policy", policy, sizeof(policy));
    if (strcmp(policy, "noeviction") != 0) {
        findings_add(findings, FINDING_WARNING, "eviction",
                     "maxmemory-policy is %s, which may evict locks: set it to noeviction", policy);
    }
    if (most > 0 && used > most / 100 * FULL_PERCENT) {
        findings_add(findings, FINDING_WARNING, "memory nearly full",
                     "%" PRId64 " of %" PRId64 " bytes are in use: raise maxmemory", used, most);
    }
    if (clients_most > 0 && 100 * clients > FULL_PERCENT * clients_most) {
        findings_add(findings, FINDING_WARNING, "clients nearly full",
                     "%" PRId64 " of %" PRId64 " connections are in use: raise maxclients", clients,
                     clients_most);
    }
}

static void check_info(struct checkup *checkup, struct findings *findings, redisContext *context) {
    redisReply *info = direct_ask(context, "INFO");

    if (info != NULL && info->type == REDIS_REPLY_STRING) {
        direct_info(info, "run_id", checkup->run_id, sizeof(checkup->run_id));
        check_version(checkup, findings, info);
        check_role(findings, info);
        check_uptime(checkup, findings, info);
        check_persistence(checkup, findings, context, info);
        check_memory(findings, info);
    }
    freeReplyObject(info);
}

/* ------------------------------------------------------------------------------------------------
 */

/* Reports that the library cannot work with the node at all, and why. */
static void report_unreachable(const struct checkup *checkup, struct findings *findings,
                               const char *why) {
    static const struct {
        const char *part; /* part of the cause's text */
        const char *name;
        const char *fault;
        const char *advice;
    } causes[] = {
        {DIRECT_SILENCE, "unreachable", "it takes connections and does not answer",
         "is it stopped, or busy?"},
        {DIRECT_NONSENSE, "unreachable", "it does not speak as Redis does",
         "is another server at its address?"},
        {"max number of clients", "no connections left", "it takes no more connections",
         "raise maxclients, or end clients"},
        {"DB index", "database", "it has no such database",
         "name another in its URI, or raise databases"},
        {"SELECT is not allowed", "cluster", "it has no such database",
         "name servers that are no cluster"},
    };

    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (strstr(why, causes[i].part) != NULL) {
            findings_add(findings, FINDING_FAULT, causes[i].name, "%s: %.120s; %s", causes[i].fault,
                         why, causes[i].advice);
            return;
        }
    }
    if (nodes_is_refusal(why)) {
        findings_add(findings, FINDING_FAULT, "login",
                     "it refuses the login: %.120s; check user and password in its URI", why);
    } else {
        findings_add(findings, FINDING_FAULT, "unreachable",
                     "it cannot be reached: %.120s; is it running, is %s its address?", why,
                     checkup->uri.host);
    }
}

/* Returns whether the node's answer to PING shows that it accepts this user. */
static bool lets_in(const struct checkup *checkup, struct findings *findings) {
    const char *why = checkup->why;

    if (strncmp(why, "BUSY", 4) == 0) {
        findings_add(findings, FINDING_FAULT, "busy script",
                     "a script keeps it busy: SCRIPT KILL ends the script");
        return false;
    }
    /* INFO still works then, and reports more. */
    if (why[0] == '\0' || strncmp(why, "NOPERM", 6) == 0 || strncmp(why, "LOADING", 7) == 0 ||
        strncmp(why, "MASTERDOWN", 10) == 0) {
        return true;
    }
    report_unreachable(checkup, findings, why);
    return false;
}

/* Returns whether a text is a marker as the library writes it: two times and a run. */
static bool is_marker(const char *text) {
    size_t first = strspn(text, "0123456789");
    size_t last = text[first] == ':' ? strspn(text + first + 1, "0123456789") : 0;
    const char *run = text + first + 1 + last;

    return first > 0 && last > 0 && *run == ':' &&
           run[1 + strspn(run + 1, "0123456789abcdefABCDEF")] == '\0';
}

static void ping(struct checkup *checkup) {
    redisReply *reply = direct_ask(checkup->context, "PING");

    if (strcmp(direct_text(reply), "PONG") != 0) {
        snprintf(checkup->why, sizeof(checkup->why), "%s", direct_failure(checkup->context, reply));
    }
    freeReplyObject(reply);
}

static void read_marker(struct checkup *checkup) {
    redisReply *reply = direct_ask(checkup->context, "GET " REDLOCK_MARKER_KEY);
    const char *text = direct_text(reply);

    checkup->has_odd_marker =
        (reply != NULL && reply->type == REDIS_REPLY_STRING && !is_marker(text)) ||
        strncmp(text, "WRONGTYPE", 9) == 0;
    freeReplyObject(reply);
}

void checkup_begin(struct checkup *checkup) {
    if (checkup->uri.has_tls) {
        return; /* the library reports whether it can be reached */
    }
    checkup->context =
        direct_connect(&checkup->uri, checkup->timeout_ms, checkup->why, sizeof(checkup->why));
    if (checkup->context != NULL) {
        ping(checkup);
        read_marker(checkup);
    }
}

void checkup_node(struct checkup *checkup, struct findings *findings) {
    if (checkup->uri.has_tls) {
        return;
    }
    if (checkup->context == NULL) {
        report_unreachable(checkup, findings, checkup->why);
        return;
    }
    if (lets_in(checkup, findings)) {
        check_clock(checkup, findings, checkup->context);
        check_info(checkup, findings, checkup->context);
        rights_check(findings, checkup->context, checkup->prefix);
    }
    if (checkup->has_odd_marker) {
        findings_add(findings, FINDING_WARNING, "marker",
                     "its key " REDLOCK_MARKER_KEY " had a value that is no marker, so that its "
                     "memory counts as new: let nobody else write that key");
    }
    redisFree(checkup->context);
    checkup->context = NULL;
}
