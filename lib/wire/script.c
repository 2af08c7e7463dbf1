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

/* Numbers below 2^53 are exact in Lua; microseconds since 1970 are, until the year 2255. */
#define BEAT                                                                                       \
    "local time = redis.call('time')\n"                                                            \
    "local now = time[1] * 1000000 + time[2]\n"                                                    \
    "local first, last = now, 0\n"                                                                 \
    "local value = redis.call('get', KEYS[1])\n"                                                   \
    "if value then\n"                                                                              \
    "  local f, l = string.match(value, '^(%d+):(%d+)$')\n"                                        \
    "  if f and tonumber(f) <= now and tonumber(l) >= tonumber(ARGV[1]) then\n"                    \
    "    first, last = tonumber(f), tonumber(l)\n"                                                 \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "if now - last >= 1000000 then\n"                                                              \
    "  last = now\n"                                                                               \
    "  redis.call('set', KEYS[1], string.format('%.0f:%.0f', first, last))\n"                      \
    "end\n"                                                                                        \
    "return string.format('%.0f %.0f %.0f', now, now - first, last)\n"

/* The SHA-1 is that of the text; a test has a server compute it. */
static const struct {
    const char *text;
    const char *sha;
} scripts[SCRIPT_COUNT] = {
    [SCRIPT_RELEASE] = {RELEASE, "62c1a2e0ef5bb03a6a9c8e87b14b4b450163bb31"},
    [SCRIPT_RENEW] = {RENEW, "96323ed452aefe02410349daba63fb092bc63d2d"},
    [SCRIPT_BEAT] = {BEAT, "acbe8118e6974626cc523a591d3cef6bf5bfaba7"},
};

const char *script_text(enum script script) {
    return scripts[script].text;
}

const char *script_sha(enum script script) {
    return scripts[script].sha;
}
