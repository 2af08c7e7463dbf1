#include "scripting.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
#include <stdlib.h>

/* One interpreter serves all stores: scripts keep no state between calls. */
static lua_State *lua;
static int compiled[SCRIPT_COUNT]; /* references to the scripts' functions */
static struct store *current;

/* ---- redis.call and redis.pcall ---- */

static void push_error(const struct reply *reply) {
    lua_createtable(lua, 0, 1);
    lua_pushlstring(lua, reply->text, reply->length);
    lua_setfield(lua, -2, "err");
}

static void push_reply(const struct reply *reply) {
    switch (reply->type) {
    case REPLY_STATUS:
        lua_createtable(lua, 0, 1);
        lua_pushlstring(lua, reply->text, reply->length);
        lua_setfield(lua, -2, "ok");
        break;
    case REPLY_ERROR:
        push_error(reply);
        break;
    case REPLY_INTEGER:
        lua_pushnumber(lua, (lua_Number)reply->integer);
        break;
    case REPLY_NIL:
        lua_pushboolean(lua, 0);
        break;
    case REPLY_STRING:
        lua_pushlstring(lua, reply->text, reply->length);
        break;
    }
}

static struct reply run_words(lua_State *state) {
    struct words words;
    words.count = (unsigned)lua_gettop(state);
    if (words.count == 0 || words.count > WORDS_MAX) {
        luaL_error(state, "Please specify at least one argument for this redis.call() call");
    }
    for (unsigned i = 0; i < words.count; i++) {
        words.word[i].text = lua_tolstring(state, (int)i + 1, &words.word[i].length);
        if (words.word[i].text == NULL) {
            luaL_error(state, "Command arguments must be strings or integers");
        }
    }
    return store_run(current, &words);
}

/* ---- the answers that are lists ---- */

/* Pushes the result of TIME: seconds and microseconds, as strings. */
static void push_time(void) {
    char number[24];
    uint64_t us = current->clock(current->owner) / 1000;
    lua_createtable(lua, 2, 0);
    snprintf(number, sizeof(number), "%" PRIu64, us / 1000000);
    lua_pushstring(lua, number);
    lua_rawseti(lua, -2, 1);
    snprintf(number, sizeof(number), "%" PRIu64, us % 1000000);
    lua_pushstring(lua, number);
    lua_rawseti(lua, -2, 2);
}

/* Appends a member, and its score if required, to the list on top of the stack. */
static void append_member(lua_State *state, const struct member *member, bool with_score) {
    char number[24];
    int count = (int)lua_objlen(state, -1);
    lua_pushlstring(state, member->name, member->length);
    lua_rawseti(state, -2, count + 1);
    if (!with_score) {
        return;
    }
    snprintf(number, sizeof(number), "%" PRId64, member->score);
    lua_pushstring(state, number);
    lua_rawseti(state, -2, count + 2);
}

/*
 * Pushes the result of ZRANGE key first last [WITHSCORES]: the members from `first` to `last`, or
 * the member -1, the one with the largest score.
 */
static void push_range(lua_State *state) {
    size_t length;
    const char *name = luaL_checklstring(state, 2, &length);
    const struct store_key *key = store_find(current, name, length);
    const struct set *set = key != NULL && key->type == STORE_SET ? &key->set : NULL;
    lua_Integer first = lua_tointeger(state, 3), last = lua_tointeger(state, 4);
    bool with_scores = lua_gettop(state) == 5;
    lua_newtable(state);
    if (set != NULL && last < 0) {
        append_member(state, set_last(set), with_scores);
        return;
    }
    const struct member *member = NULL;
    for (lua_Integer i = 0; set != NULL && i <= last; i++) {
        member = set_next(set, member);
        if (member == NULL) {
            return;
        }
        if (i >= first) {
            append_member(state, member, with_scores);
        }
    }
}

/* Pushes the result of ZRANGE key least most BYSCORE. */
static void push_between(lua_State *state) {
    size_t length;
    const char *name = luaL_checklstring(state, 2, &length);
    const struct store_key *key = store_find(current, name, length);
    const struct set *set = key != NULL && key->type == STORE_SET ? &key->set : NULL;
    bool is_open = strcmp(luaL_checkstring(state, 3), "-inf") == 0;
    int64_t least = is_open ? INT64_MIN : (int64_t)luaL_checknumber(state, 3);
    int64_t most = (int64_t)luaL_checknumber(state, 4);
    const struct member *member = NULL;
    lua_newtable(state);
    for (int count = 1; set != NULL && (member = set_next(set, member)) != NULL;) {
        if (member->score >= least && member->score <= most) {
            lua_pushlstring(state, member->name, member->length);
            lua_rawseti(state, -2, count++);
        }
    }
}

/* Pushes the result of MGET key...: false for a key that is missing or no string. */
static void push_values(lua_State *state) {
    int count = lua_gettop(state);
    lua_createtable(state, count - 1, 0);
    for (int i = 2; i <= count; i++) {
        size_t length;
        const char *name = luaL_checklstring(state, i, &length);
        const struct store_key *key = store_find(current, name, length);
        if (key != NULL && key->type == STORE_STRING) {
            lua_pushlstring(state, key->value, key->value_length);
        } else {
            lua_pushboolean(state, 0);
        }
        lua_rawseti(state, -2, i - 1);
    }
}

/* Pushes the result of PUBSUB NUMSUB channel...: each channel, and its number of subscribers. */
static void push_subscribers(lua_State *state) {
    int words = lua_gettop(state);
    current->channels_asked = (unsigned)words - 2;
    lua_createtable(state, 2 * (words - 2), 0);
    for (int i = 3; i <= words; i++) {
        struct word channel;
        channel.text = luaL_checklstring(state, i, &channel.length);
        bool is_known = current->subscribers != NULL;
        unsigned count = is_known ? current->subscribers(current->owner, &channel) : 0;
        lua_pushlstring(state, channel.text, channel.length);
        lua_rawseti(state, -2, 2 * i - 5);
        lua_pushnumber(state, count);
        lua_rawseti(state, -2, 2 * i - 4);
    }
}

static bool asks_for(lua_State *state, const char *command, int words) {
    return lua_gettop(state) == words && strcmp(luaL_checkstring(state, 1), command) == 0;
}

/* Answers the commands whose results are lists. Returns false for any other. */
static bool push_list(lua_State *state) {
    if (asks_for(state, "time", 1)) {
        push_time();
        return true;
    }
    if (asks_for(state, "zrange", 5) && strcmp(luaL_checkstring(state, 5), "byscore") == 0) {
        push_between(state);
        return true;
    }
    if (asks_for(state, "zrange", 5) || asks_for(state, "zrange", 4)) {
        push_range(state);
        return true;
    }
    if (strcmp(luaL_checkstring(state, 1), "pubsub") == 0) {
        push_subscribers(state);
        return true;
    }
    if (strcmp(luaL_checkstring(state, 1), "mget") == 0) {
        push_values(state);
        return true;
    }
    return false;
}

static int on_pcall(lua_State *state) {
    if (push_list(state)) {
        return 1;
    }
    struct reply reply = run_words(state);
    push_reply(&reply);
    return 1;
}

static int on_call(lua_State *state) {
    if (push_list(state)) {
        return 1;
    }
    struct reply reply = run_words(state);
    push_reply(&reply);
    return reply.type == REPLY_ERROR ? lua_error(state) : 1;
}

/* ---- the interpreter ---- */

static void start(void) {
    static const luaL_Reg functions[] = {{"call", on_call}, {"pcall", on_pcall}, {NULL, NULL}};
    lua = luaL_newstate();
    if (lua == NULL) {
        abort();
    }
    luaL_openlibs(lua);
    /* Interpreted: the scripts are too short to be worth compiling. */
    luaJIT_setmode(lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    luaL_register(lua, "redis", functions);
    lua_settop(lua, 0);
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        if (luaL_loadstring(lua, script_text((enum script)i)) != 0) {
            fprintf(stderr, "a script does not compile: %s\n", lua_tostring(lua, -1));
            exit(3);
        }
        compiled[i] = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
}

static void set_list(const char *name, const struct word *words, unsigned count) {
    lua_createtable(lua, (int)count, 0);
    for (unsigned i = 0; i < count; i++) {
        lua_pushlstring(lua, words[i].text, words[i].length);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

/* ---- answers ---- */

static struct reply text_reply(struct store *store, enum reply_type type, const char *text,
                               size_t length) {
    if (length > STORE_TEXT_MAX) {
        length = STORE_TEXT_MAX;
    }
    memcpy(store->text, text, length);
    store->text[length] = '\0';
    return (struct reply){.type = type, .text = store->text, .length = length};
}

/* Returns the error that a script threw or returned: a table with its text, or the text alone. */
static struct reply error_reply(struct store *store) {
    if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
    }
    size_t length;
    const char *text = lua_tolstring(lua, -1, &length);
    text = text != NULL ? text : "ERR the script failed";
    return text_reply(store, REPLY_ERROR, text, strlen(text));
}

static struct reply result_reply(struct store *store) {
    size_t length;
    const char *text;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(lua, -1, &length);
        return text_reply(store, REPLY_STRING, text, length);
    case LUA_TNUMBER:
        return (struct reply){.type = REPLY_INTEGER, .integer = (int64_t)lua_tonumber(lua, -1)};
    case LUA_TTABLE:
        return error_reply(store);
    default:
        return (struct reply){.type = REPLY_NIL};
    }
}

struct reply scripting_run(struct store *store, enum script script, const struct words *words,
                           unsigned keys) {
    if (lua == NULL) {
        start();
    }
    current = store;
    set_list("KEYS", &words->word[3], keys);
    set_list("ARGV", &words->word[3 + keys], words->count - 3 - keys);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, compiled[script]);
    struct reply reply = lua_pcall(lua, 0, 1, 0) == 0 ? result_reply(store) : error_reply(store);
    lua_settop(lua, 0);
    return reply;
}
