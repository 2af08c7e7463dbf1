/*
 * A module for the server that logs the commands of redlock-chaos, what becomes of its keys
 * meanwhile, and the pushes to waiters. The server calls filter_command before each command, also
 * for those of scripts, which are written in small letters, and on_key after each change.
 *
 * Debian has no header for modules, so what is needed of the interface is declared here: a module
 * asks for each function by its name.
 */
#include "actions_log.h"
#include "chance.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define API_VERSION 1
#define READ_KEY 1
#define KEY_IS_STRING 1
#define IS_LOADING (1 << 13)
/* generic commands, strings, expired and evicted keys */
#define CHANGES ((1 << 2) | (1 << 3) | (1 << 8) | (1 << 9))

struct context;
struct filter;
struct filtered;
struct key;
struct string;

typedef int on_change(struct context *context, int type, const char *event, struct string *key);
typedef void on_command(struct filtered *command);

static struct {
    void (*SetModuleAttribs)(struct context *, const char *name, int version, int api);
    struct context *(*GetDetachedThreadSafeContext)(struct context *);
    int (*GetContextFlags)(struct context *);
    int (*SubscribeToKeyspaceEvents)(struct context *, int types, on_change *);
    struct filter *(*RegisterCommandFilter)(struct context *, on_command *, int flags);
    int (*CommandFilterArgsCount)(struct filtered *);
    struct string *(*CommandFilterArgGet)(struct filtered *, int position);
    struct string *(*CreateString)(struct context *, const char *, size_t);
    void (*FreeString)(struct context *, struct string *);
    const char *(*StringPtrLen)(const struct string *, size_t *);
    struct key *(*OpenKey)(struct context *, struct string *, int mode);
    void (*CloseKey)(struct key *);
    int (*KeyType)(struct key *);
    char *(*StringDMA)(struct key *, size_t *, int mode);
    long long (*GetAbsExpire)(struct key *);
} api;

static struct {
    int log;
    unsigned keys;
    bool has_started;
    struct context *context;
    struct string *names[1024];
} observer;

static void append(enum frame_kind kind, const char *text, size_t length) {
    if (frame_write(observer.log, boottime_ns(), kind, text, length) != 0) {
        abort(); /* a log with a gap says something else than what has happened */
    }
}

static void log_key(struct context *context, enum frame_kind kind, struct string *name) {
    char text[256];
    size_t length;
    int size;
    struct key *key = api.OpenKey(context, name, READ_KEY);
    const char *number = api.StringPtrLen(name, &length) + strlen(KEY_PREFIX);

    if (key == NULL || api.KeyType(key) != KEY_IS_STRING) {
        size = snprintf(text, sizeof(text), "%.16s - 0", number);
    } else {
        const char *value = api.StringDMA(key, &length, READ_KEY);

        size = snprintf(text, sizeof(text), "%.16s %.*s %lld", number, (int)length, value,
                        api.GetAbsExpire(key));
    }
    append(kind, text, (size_t)size);
    if (key != NULL) {
        api.CloseKey(key);
    }
}

static bool is_observed(struct string *name) {
    size_t length;
    const char *text = api.StringPtrLen(name, &length);

    const size_t prefix = strlen(KEY_PREFIX);

    return length > prefix && memcmp(text, KEY_PREFIX, prefix) == 0 &&
           memchr(text + prefix, ':', length - prefix) == NULL;
}

static int on_key(struct context *context, int type, const char *event, struct string *name) {
    /*
     * Each SET has an expiry, which the key gets before the next event: now it may have that of its
     * last value.
     */
    bool is_half = strcmp(event, "set") == 0;

    (void)type;
    if (observer.has_started && !is_half && is_observed(name)) {
        bool has_expired = strcmp(event, "expired") == 0;

        log_key(context, has_expired ? FRAME_EXPIRED : FRAME_KEY, name);
    }
    return 0;
}

static bool is_of_client(const char *verb, size_t length) {
    return (length == 3 && memcmp(verb, "SET", 3) == 0) ||
           (length == 4 && memcmp(verb, "EVAL", 4) == 0) ||
           (length == 7 && memcmp(verb, "EVALSHA", 7) == 0);
}

/* Logs a command as RESP, or a push. A frame that would be longer is not of the library. */
static void filter_command(struct filtered *command) {
    static char text[FRAME_MAX];
    int count = api.CommandFilterArgsCount(command);
    size_t length;
    const char *word = api.StringPtrLen(api.CommandFilterArgGet(command, 0), &length);
    size_t used;

    if (count == 3 && length == 7 && memcmp(word, "publish", 7) == 0) {
        word = api.StringPtrLen(api.CommandFilterArgGet(command, 2), &length);
        if (length <= FRAME_MAX) {
            append(FRAME_PUSH, word, length);
        }
        return;
    }
    if (!is_of_client(word, length) || (api.GetContextFlags(NULL) & IS_LOADING)) {
        return; /* while the server loads its file, it refuses commands */
    }
    if (!observer.has_started) { /* after a restart: what the server has loaded */
        observer.has_started = true;
        append(FRAME_STARTED, "", 0);
        for (unsigned i = 0; i < observer.keys; i++) {
            log_key(observer.context, FRAME_KEY, observer.names[i]);
        }
    }
    used = (size_t)snprintf(text, sizeof(text), "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        word = api.StringPtrLen(api.CommandFilterArgGet(command, i), &length);
        if (used + length + 32 > sizeof(text)) {
            return;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "$%zu\r\n", length);
        memcpy(text + used, word, length);
        memcpy(text + used + length, "\r\n", 2);
        used += length + 2;
    }
    append(FRAME_COMMAND, text, used);
}

static bool find_functions(struct context *context) {
    int (*get)(const char *name, void *function) =
        *(int (**)(const char *, void *))(void *)context; /* the first member of the context */
    bool found = true;

#define FIND(name) found &= get("RedisModule_" #name, (void *)&api.name) == 0
    FIND(SetModuleAttribs);
    FIND(GetDetachedThreadSafeContext);
    FIND(GetContextFlags);
    FIND(SubscribeToKeyspaceEvents);
    FIND(RegisterCommandFilter);
    FIND(CommandFilterArgsCount);
    FIND(CommandFilterArgGet);
    FIND(CreateString);
    FIND(FreeString);
    FIND(StringPtrLen);
    FIND(OpenKey);
    FIND(CloseKey);
    FIND(KeyType);
    FIND(StringDMA);
    FIND(GetAbsExpire);
    return found;
}

/* The argument: the number of keys. The path of the log is in the environment of each server. */
__attribute__((visibility("default"))) int RedisModule_OnLoad(struct context *context,
                                                              struct string **arguments, int count);

int RedisModule_OnLoad(struct context *context, struct string **arguments, int count) {
    size_t length;
    char name[32];

    if (!find_functions(context) || count != 1) {
        return 1;
    }
    api.SetModuleAttribs(context, "observer", 1, API_VERSION);
    observer.log = open(getenv(OBSERVER_LOG), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    observer.keys = (unsigned)strtoul(api.StringPtrLen(arguments[0], &length), NULL, 10);
    observer.context = api.GetDetachedThreadSafeContext(context);
    for (unsigned i = 0; i < observer.keys; i++) {
        snprintf(name, sizeof(name), KEY_PREFIX "%u", i);
        observer.names[i] = api.CreateString(NULL, name, strlen(name));
    }
    return observer.log < 0 || api.SubscribeToKeyspaceEvents(context, CHANGES, on_key) != 0 ||
           api.RegisterCommandFilter(context, filter_command, 0) == NULL;
}
