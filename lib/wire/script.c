#include "wire/script.h"

/* What a key is that does not have our token. Returns an item of the answer. */
#define OTHERWISE                                                                                  \
    "local function otherwise(key, value)\n"                                                       \
    "  if value == false then return 'm' end\n"                                                    \
    "  if type(value) == 'table' then\n"                                                           \
    "    if string.find(value.err, 'WRONGTYPE', 1, true) then return 't' end\n"                    \
    "    error(value.err)\n"                                                                       \
    "  end\n"                                                                                      \
    "  local left = redis.call('pttl', key)\n"                                                     \
    "  if left < 0 then return 'p' end\n"                                                          \
    "  return 'h' .. string.format('%.0f', left)\n"                                                \
    "end\n"                                                                                        \
    "local answer = {}\n"

/* Redlock, "Basic algorithm": delete only while the value is ours. */
#define RELEASE                                                                                    \
    OTHERWISE                                                                                      \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  local value = redis.pcall('get', key)\n"                                                    \
    "  if value == ARGV[i] then\n"                                                                 \
    "    redis.call('del', key)\n"                                                                 \
    "    answer[i] = 'y'\n"                                                                        \
    "  else\n"                                                                                     \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* Redlock, "Making the algorithm more reliable: extending the lock". Never shortens. */
#define RENEW                                                                                      \
    OTHERWISE                                                                                      \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  local value = redis.pcall('get', key)\n"                                                    \
    "  if value == ARGV[2 * i - 1] then\n"                                                         \
    "    if redis.call('pttl', key) < tonumber(ARGV[2 * i]) then\n"                                \
    "      redis.call('pexpire', key, ARGV[2 * i])\n"                                              \
    "    end\n"                                                                                    \
    "    answer[i] = 'y'\n"                                                                        \
    "  else\n"                                                                                     \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* The SHA-1 is that of the text; a test has a server compute it. */
static const struct {
    const char *text;
    const char *sha;
} scripts[SCRIPT_COUNT] = {
    [SCRIPT_RELEASE] = {RELEASE, "62c1a2e0ef5bb03a6a9c8e87b14b4b450163bb31"},
    [SCRIPT_RENEW] = {RENEW, "96323ed452aefe02410349daba63fb092bc63d2d"},
};

const char *script_text(enum script script) {
    return scripts[script].text;
}

const char *script_sha(enum script script) {
    return scripts[script].sha;
}
