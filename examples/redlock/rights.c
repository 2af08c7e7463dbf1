#include "rights.h"

#include "direct.h"

#include <redlock.h>
#include <stdio.h>
#include <string.h>

struct right {
    const char *feature;
    const char *name;   /* as in ACL SETUSER */
    const char *format; /* command that needs the right; %s is the key */
};

/* "No such key" counts as success for all of these. */
static const struct right rights[] = {
    {"locks", "+set", "SET %s 0 NX PX 1"},
    {"locks", "+get", "GET %s"},
    {"locks", "+pttl", "PTTL %s"},
    {"locks", "+pexpire", "PEXPIRE %s::none 1"},
    {"locks", "+del", "DEL %s::none"},
    {"locks", "+eval", "EVAL return(1) 0"},
    {"locks", "+evalsha", "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0"},
    {"locks", "+info", "INFO server"},
    {"locks", "+time", "TIME"},
    {"locks", "~" REDLOCK_MARKER_KEY, "GET " REDLOCK_MARKER_KEY},
    {"readers and writers", "+zadd", "ZADD %s::readers XX 1 none"},
    {"readers and writers", "+zscore", "ZSCORE %s::readers none"},
    {"readers and writers", "+zrem", "ZREM %s::readers none"},
    {"readers and writers", "+zremrangebyscore", "ZREMRANGEBYSCORE %s::readers 1 0"},
    {"readers and writers", "+zrange", "ZRANGE %s::readers 0 0"},
    {"readers and writers", "+zcount", "ZCOUNT %s::readers 1 0"},
    {"readers and writers", "+pexpireat", "PEXPIREAT %s::none 1"},
    {"wait queues", "+exists", "EXISTS %s::none"},
    {"wait queues", "~redlock:waiting", "EXISTS redlock:waiting"},
    {"wait queues", "~redlock:queues", "EXISTS redlock:queues"},
    {"wait queues", "+publish", "PUBLISH redlock:doctor 0"},
    {"wait queues", "+pubsub|numsub", "PUBSUB NUMSUB redlock:doctor"},
    {"wait queues", "+subscribe", "SUBSCRIBE redlock:doctor"},
};

#define RIGHT_COUNT (sizeof(rights) / sizeof(rights[0]))

static void unsubscribe(redisContext *context) {
    freeReplyObject(direct_ask(context, "UNSUBSCRIBE redlock:doctor"));
}

static bool is_vital(const struct right *right) {
    return strcmp(right->feature, "locks") == 0;
}

/* Reports an error that prevents locks but is not about rights. Most of them show only at SET. */
static void report_error(struct findings *findings, const struct right *right, const char *error) {
    static const struct {
        const char *begin;
        const char *name;
        const char *advice;
    } errors[] = {
        {"OOM ", "memory full", "raise maxmemory, or use a server for locks alone"},
        {"MISCONF ", "cannot save",
         "repair the disk: the server refuses writes while it cannot save"},
        {"READONLY ", "replica", "name its master instead"},
        {"NOREPLICAS ", "no replicas", "start replicas, or set min-replicas-to-write to 0"},
        {"BUSY ", "busy script", "end the script: SCRIPT KILL"},
        {"LOADING ", "loading", "wait until it has read its data"},
        {"MOVED ", "cluster", "name servers that are no cluster"},
        {"CLUSTERDOWN ", "cluster", "name servers that are no cluster"},
        {"ERR Could not find scripting engine", "no Lua",
         "it runs no Lua scripts, which locks need: load its Lua module, or build it with Lua"},
        {"ERR This instance has Lua scripting", "no Lua",
         "it runs no Lua scripts, which locks need: start it with Lua (--lua)"},
    };

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (strncmp(error, errors[i].begin, strlen(errors[i].begin)) == 0) {
            findings_add(findings, FINDING_FAULT, errors[i].name, "it refuses %s: %.60s; %s",
                         right->name + 1, error, errors[i].advice);
            return;
        }
    }
    if (strncmp(error, "NOSCRIPT", 8) != 0) {
        findings_add(findings, FINDING_FAULT, "refusal", "it refuses %s: %.120s", right->name + 1,
                     error);
    }
}

/* Reports a command that is unknown or renamed, which is not a matter of rights. */
static void report_unknown(struct findings *findings, const struct right *right) {
    findings_add(findings, is_vital(right) ? FINDING_FAULT : FINDING_WARNING, "unknown command",
                 "it does not know the command %.*s, which %s need: end its rename-command",
                 (int)strcspn(right->format, " "), right->format, right->feature);
}

static void report_missing(struct findings *findings, const struct right *right,
                           const char *error) {
    bool is_command = strstr(error, "' command") != NULL;
    bool is_key = !is_command && strstr(error, "key") != NULL && right->name[0] != '~';
    bool is_channel = !is_command && strstr(error, "channel") != NULL;

    findings_add(findings, is_vital(right) ? FINDING_FAULT : FINDING_WARNING, "right",
                 "for %s its user lacks the right %s: ACL SETUSER <user> %s", right->feature,
                 is_channel ? "&redlock:*"
                 : is_key   ? "to the keys"
                            : right->name,
                 is_channel ? "&redlock:*"
                 : is_key   ? "~<keys of locks>*"
                            : right->name);
}

/* Checks a right. Returns whether it makes sense to check the next one. */
static bool check(struct findings *findings, redisContext *context, const struct right *right,
                  const char *key) {
    redisReply *reply = direct_ask(context, right->format, key);
    bool is_refusal = reply != NULL && reply->type == REDIS_REPLY_ERROR;
    bool goes_on = reply != NULL;

    if (is_refusal && strncmp(reply->str, "ERR unknown command", 19) == 0) {
        report_unknown(findings, right);
    } else if (is_refusal && strncmp(reply->str, "NOPERM", 6) == 0) {
        report_missing(findings, right, reply->str);
    } else if (is_refusal && strncmp(reply->str, "NOSCRIPT", 8) != 0) {
        report_error(findings, right, reply->str);
        goes_on = false;
    } else if (strcmp(right->name, "+subscribe") == 0 && reply != NULL) {
        unsubscribe(context);
    }
    freeReplyObject(reply);
    return goes_on;
}

void rights_check(struct findings *findings, redisContext *context, const char *prefix) {
    char key[512];
    size_t before = findings->count;

    snprintf(key, sizeof(key), "%.480sdoctor", prefix);
    for (size_t i = 0; i < RIGHT_COUNT; i++) {
        if (!check(findings, context, &rights[i], key)) {
            break;
        }
    }
    if (findings->count == before && context->err == 0) {
        findings_add(findings, FINDING_GOOD, "rights", "its user has all rights");
    }
}
