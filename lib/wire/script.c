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

/* A counter's number, or nothing where it is none; and the writing of it. */
#define COUNTERS                                                                                   \
    "local function count_of(counter)\n"                                                           \
    "  local value = redis.pcall('get', counter)\n"                                                \
    "  if value == false then return 0 end\n"                                                      \
    "  return type(value) == 'string' and tonumber(value)\n"                                       \
    "end\n"                                                                                        \
    "local function raise(counter, count, idle)\n"                                                 \
    "  local text = string.format('%.0f', count)\n"                                                \
    "  if idle == '0' then\n"                                                                      \
    "    redis.call('set', counter, text)\n"                                                       \
    "  else\n"                                                                                     \
    "    redis.call('set', counter, text, 'PX', idle)\n"                                           \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "local function grant(count)\n"                                                                \
    "  return 'y' .. string.format('%.0f', count)\n"                                               \
    "end\n"

#define FENCING OTHERWISE COUNTERS

/*
 * As SET NX PX, of all keys or none. What is ours already (a top-up that was sent twice) stays so.
 * Of several keys that others hold, that which is held longest tells for how long.
 */
#define TAKE                                                                                       \
    FENCING                                                                                        \
    "local function worse(one, other)\n"                                                           \
    "  local a = one and string.match(one, '^h(%d+)')\n"                                           \
    "  local b = string.match(other, '^h(%d+)')\n"                                                 \
    "  if one and (not a or (b and tonumber(a) >= tonumber(b))) then return one end\n"             \
    "  return other\n"                                                                             \
    "end\n"                                                                                        \
    "local k, a = 1, 1\n"                                                                          \
    "while k <= #KEYS do\n"                                                                        \
    "  local token, n, fenced = ARGV[a], tonumber(ARGV[a + 2]), ARGV[a + 3] == '1'\n"              \
    "  local count, refusal = tonumber(ARGV[a + 4])\n"                                             \
    "  for i = k, k + n - 1 do\n"                                                                  \
    "    local value = redis.pcall('get', KEYS[i])\n"                                              \
    "    if value ~= false and value ~= token then\n"                                              \
    "      refusal = worse(refusal, otherwise(KEYS[i], value))\n"                                  \
    "    end\n"                                                                                    \
    "    local counted = not fenced or count_of(KEYS[i + n])\n"                                    \
    "    if not counted then\n"                                                                    \
    "      refusal = worse(refusal, 't')\n"                                                        \
    "    elseif fenced then\n"                                                                     \
    "      count = math.max(count, counted + ARGV[a + 5])\n"                                       \
    "    end\n"                                                                                    \
    "  end\n"                                                                                      \
    "  for i = k, k + n - 1 do\n"                                                                  \
    "    if refusal then break end\n"                                                              \
    "    redis.call('set', KEYS[i], token, 'PX', ARGV[a + 1], 'NX')\n"                             \
    "    if fenced then raise(KEYS[i + n], count, ARGV[a + 6]) end\n"                              \
    "  end\n"                                                                                      \
    "  answer[#answer + 1] = refusal or fenced and grant(count) or 'y'\n"                          \
    "  k, a = k + n * (fenced and 2 or 1), a + 7\n"                                                \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

#define KEEP                                                                                       \
    FENCING                                                                                        \
    "for i = 1, #KEYS / 2 do\n"                                                                    \
    "  local key, counter, a = KEYS[2 * i - 1], KEYS[2 * i], 4 * i\n"                              \
    "  local value, count = redis.pcall('get', key), count_of(counter)\n"                          \
    "  if not count then\n"                                                                        \
    "    answer[i] = 't'\n"                                                                        \
    "  elseif value == ARGV[a - 3] then\n"                                                         \
    "    if redis.call('pttl', key) < tonumber(ARGV[a - 2]) then\n"                                \
    "      redis.call('pexpire', key, ARGV[a - 2])\n"                                              \
    "    end\n"                                                                                    \
    "    count = math.max(count, tonumber(ARGV[a - 1]))\n"                                         \
    "    raise(counter, count, ARGV[a])\n"                                                         \
    "    answer[i] = grant(count)\n"                                                               \
    "  else\n"                                                                                     \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* A release or renewal that comes late does not find the token. */
#define STAY                                                                                       \
    OTHERWISE                                                                                      \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  local value = redis.pcall('get', key)\n"                                                    \
    "  if value == ARGV[2 * i - 1] then\n"                                                         \
    "    local nobody = string.rep('0', 40) .. string.sub(value, 41)\n"                            \
    "    redis.call('set', key, nobody, 'PX', ARGV[2 * i])\n"                                      \
    "    answer[i] = 'y'\n"                                                                        \
    "  else\n"                                                                                     \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* Which permits are free is told to those alone who cannot have the one they asked for. */
#define PERMIT                                                                                     \
    FENCING                                                                                        \
    "local function free(key, permits)\n"                                                          \
    "  local name, map, digit = string.match(key, '^.*:'), {'f'}, 0\n"                             \
    "  for i = 0, permits - 1 do\n"                                                                \
    "    if redis.pcall('get', name .. i) == false then digit = digit + 2 ^ (i % 4) end\n"         \
    "    if i % 4 == 3 or i == permits - 1 then\n"                                                 \
    "      map[#map + 1] = string.format('%x', digit)\n"                                           \
    "      digit = 0\n"                                                                            \
    "    end\n"                                                                                    \
    "  end\n"                                                                                      \
    "  return table.concat(map)\n"                                                                 \
    "end\n"                                                                                        \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  local token, fence = ARGV[5 * i - 4], tonumber(ARGV[5 * i - 2])\n"                          \
    "  local counter, value, count = key .. ':fence', redis.pcall('get', key), 0\n"                \
    "  if fence > 0 then count = count_of(counter) end\n"                                          \
    "  if count and (value == false or value == token) then\n"                                     \
    "    if not value then redis.call('set', key, token, 'PX', ARGV[5 * i - 3]) end\n"             \
    "    answer[i] = 'y'\n"                                                                        \
    "    if fence > 0 then\n"                                                                      \
    "      count = math.max(count + 1, fence)\n"                                                   \
    "      raise(counter, count, ARGV[5 * i - 1])\n"                                               \
    "      answer[i] = grant(count)\n"                                                             \
    "    end\n"                                                                                    \
    "  else\n"                                                                                     \
    "    local what = count and otherwise(key, value) or 't'\n"                                    \
    "    answer[i] = what .. free(key, tonumber(ARGV[5 * i]))\n"                                   \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

#define INSPECT                                                                                    \
    COUNTERS                                                                                       \
    "local value = redis.pcall('get', KEYS[1])\n"                                                  \
    "local what, left = 'f', 0\n"                                                                  \
    "if type(value) == 'table' then\n"                                                             \
    "  what, value = 't', ''\n"                                                                    \
    "elseif value then\n"                                                                          \
    "  left = redis.call('pttl', KEYS[1])\n"                                                       \
    "  what = left < 0 and 'p' or 'h'\n"                                                           \
    "end\n"                                                                                        \
    "local count = count_of(KEYS[2]) or 0\n"                                                       \
    "local numbers = string.format('%.0f %.0f', math.max(left, 0), math.max(count, 0))\n"          \
    "return what .. ' ' .. numbers .. ' ' .. (value or '')\n"

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
    [SCRIPT_TAKE] = {TAKE, "56c3012c91ca1eeb1a3ea139a640cb21939537fe"},
    [SCRIPT_KEEP] = {KEEP, "262f82dc38a93bb20966e82e2f4d1b061d03cb3e"},
    [SCRIPT_STAY] = {STAY, "c7353dfb1b6dfdb061a409571522fa673b3cdeb6"},
    [SCRIPT_INSPECT] = {INSPECT, "bb6156336676d63526bac66666037fdd3068ac9f"},
    [SCRIPT_PERMIT] = {PERMIT, "1ea2fbfbab0cd3a11b7a271bf7da9c7b11fd6d37"},
    [SCRIPT_BEAT] = {BEAT, "acbe8118e6974626cc523a591d3cef6bf5bfaba7"},
};

const char *script_text(enum script script) {
    return scripts[script].text;
}

const char *script_sha(enum script script) {
    return scripts[script].sha;
}

bool script_takes(enum script script) {
    return script == SCRIPT_TAKE || script == SCRIPT_PERMIT;
}
