#include "wire/script.h"

#include <redlock.h>

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

/* What is done to each key that has the token; the answer tells what the others are. */
#define OF_EACH_HELD_BY(token, action)                                                             \
    OTHERWISE                                                                                      \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  local value = redis.pcall('get', key)\n"                                                    \
    "  if value == " token " then\n" action "    answer[i] = 'y'\n"                                \
    "  else\n"                                                                                     \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* Redlock, "Basic algorithm": delete only while the value is ours. */
#define RELEASE OF_EACH_HELD_BY("ARGV[i]", "    redis.call('del', key)\n")

/* Redlock, "Making the algorithm more reliable: extending the lock". Never shortens. */
#define RENEW                                                                                      \
    OF_EACH_HELD_BY("ARGV[2 * i - 1]",                                                             \
                    "    if redis.call('pttl', key) < tonumber(ARGV[2 * i]) then\n"                \
                    "      redis.call('pexpire', key, ARGV[2 * i])\n"                              \
                    "    end\n")

/*
 * A counter's number after this step, or false where it is none: a whole number, not below 0, and
 * below 2^53, beyond which Lua does not count by one; and the writing of it.
 */
#define COUNTERS                                                                                   \
    "local function count_of(counter, step)\n"                                                     \
    "  local value = redis.pcall('get', counter)\n"                                                \
    "  local count = type(value) == 'string' and tonumber(value)\n"                                \
    "  if value == false then count = 0 end\n"                                                     \
    "  if not count or count < 0 or count % 1 ~= 0 then return false end\n"                        \
    "  return count + step < 2 ^ 53 and count + step\n"                                            \
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
    "    local counted = not fenced or count_of(KEYS[i + n], ARGV[a + 5])\n"                       \
    "    if not counted then\n"                                                                    \
    "      refusal = worse(refusal, 't')\n"                                                        \
    "    elseif fenced then\n"                                                                     \
    "      count = math.max(count, counted)\n"                                                     \
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

/* Where the counter is there, memory is not needed: a full server renews what it has. */
#define KEEP                                                                                       \
    FENCING                                                                                        \
    "local function refresh(counter, count, idle)\n"                                               \
    "  if idle ~= '0' then\n"                                                                      \
    "    redis.call('pexpire', counter, idle)\n"                                                   \
    "  elseif redis.call('pttl', counter) >= 0 then\n"                                             \
    "    raise(counter, count, idle)\n"                                                            \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "for i = 1, #KEYS / 2 do\n"                                                                    \
    "  local key, counter, a = KEYS[2 * i - 1], KEYS[2 * i], 4 * i\n"                              \
    "  local value, count = redis.pcall('get', key), count_of(counter, 0)\n"                       \
    "  if not count then\n"                                                                        \
    "    answer[i] = 't'\n"                                                                        \
    "  elseif value == ARGV[a - 3] then\n"                                                         \
    "    if redis.call('pttl', key) < tonumber(ARGV[a - 2]) then\n"                                \
    "      redis.call('pexpire', key, ARGV[a - 2])\n"                                              \
    "    end\n"                                                                                    \
    "    local fence = tonumber(ARGV[a - 1])\n"                                                    \
    "    if count < fence then\n"                                                                  \
    "      count = fence\n"                                                                        \
    "      raise(counter, count, ARGV[a])\n"                                                       \
    "    else\n"                                                                                   \
    "      refresh(counter, count, ARGV[a])\n"                                                     \
    "    end\n"                                                                                    \
    "    answer[i] = grant(count)\n"                                                               \
    "  else\n"                                                                                     \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* A release or renewal that comes late does not find the token. */
#define STAY                                                                                       \
    OF_EACH_HELD_BY("ARGV[2 * i - 1]",                                                             \
                    "    local nobody = string.rep('0', 40) .. string.sub(value, 41)\n"            \
                    "    redis.call('set', key, nobody, 'PX', ARGV[2 * i])\n")

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
    "  local counter, value, count = key .. '" COUNTER_SUFFIX "', redis.pcall('get', key), 0\n"    \
    "  if fence > 0 then count = count_of(counter, 1) end\n"                                       \
    "  if count and (value == false or value == token) then\n"                                     \
    "    if not value then redis.call('set', key, token, 'PX', ARGV[5 * i - 3]) end\n"             \
    "    answer[i] = 'y'\n"                                                                        \
    "    if fence > 0 then\n"                                                                      \
    "      count = math.max(count, fence)\n"                                                       \
    "      raise(counter, count, ARGV[5 * i - 1])\n"                                               \
    "      answer[i] = grant(count)\n"                                                             \
    "    end\n"                                                                                    \
    "  else\n"                                                                                     \
    "    local what = count and otherwise(key, value) or 't'\n"                                    \
    "    answer[i] = what .. free(key, tonumber(ARGV[5 * i]))\n"                                   \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* Whether a key is shared, and until when a reader is listed. By the server's clock, in ms. */
#define SHARING                                                                                    \
    "local time = redis.call('time')\n"                                                            \
    "local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"                                    \
    "local function text(number) return string.format('%.0f', number) end\n"                       \
    "local function is_shared(key, value, readers)\n"                                              \
    "  if value ~= '" REDLOCK_SHARED_VALUE "' then return false end\n"                             \
    "  if redis.call('pttl', key) < 0 then return false end\n"                                     \
    "  local count = redis.pcall('zcount', readers, text(now), '+inf')\n"                          \
    "  return type(count) == 'number' and count > 0\n"                                             \
    "end\n"                                                                                        \
    "local function listed(readers, reader)\n"                                                     \
    "  local till = tonumber(redis.call('zscore', readers, reader) or 0)\n"                        \
    "  return till >= now and till or 0\n"                                                         \
    "end\n"

/*
 * Keeps the list: who has expired is dropped, and the key lives as long as the last of the rest.
 * Those go first where a reader is listed: behind a write that takes no memory a server that is out
 * of it permits ZADD.
 * What is to expire in this millisecond is there until it is over: PEXPIREAT would delete it now.
 */
#define KEEPING                                                                                    \
    "local function settle(key, readers)\n"                                                        \
    "  redis.call('zremrangebyscore', readers, '-inf', text(now - 1))\n"                           \
    "  local last = tonumber(redis.call('zrange', readers, -1, -1, 'withscores')[2])\n"            \
    "  if last then\n"                                                                             \
    "    local till = text(math.max(last, now + 1))\n"                                             \
    "    redis.call('pexpireat', key, till)\n"                                                     \
    "    redis.call('pexpireat', readers, till)\n"                                                 \
    "  else\n"                                                                                     \
    "    redis.call('del', key, readers)\n"                                                        \
    "  end\n"                                                                                      \
    "  return 'y'\n"                                                                               \
    "end\n"                                                                                        \
    "local function list(key, readers, reader, ttl)\n"                                             \
    "  redis.call('zremrangebyscore', readers, '-inf', text(now - 1))\n"                           \
    "  local till = now + ttl\n"                                                                   \
    "  if till > listed(readers, reader) then\n"                                                   \
    "    redis.call('zadd', readers, text(till), reader)\n"                                        \
    "  end\n"                                                                                      \
    "  return settle(key, readers)\n"                                                              \
    "end\n"

#define READING OTHERWISE SHARING KEEPING
#define WRITING OTHERWISE COUNTERS SHARING

/* Taking it again with the same value (a top-up that was sent twice) changes nothing. */
#define SHARE                                                                                      \
    READING                                                                                        \
    "for i = 1, #KEYS / 3 do\n"                                                                    \
    "  local key, readers, writer = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]\n"               \
    "  local reader, ttl, step = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]\n"                  \
    "  local value = redis.pcall('get', key)\n"                                                    \
    "  local left = step == '1' and redis.call('pttl', writer) or -1\n"                            \
    "  if value ~= false and not is_shared(key, value, readers) then\n"                            \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  elseif left >= 0 and not (value and listed(readers, reader) > 0) then\n"                    \
    "    answer[i] = 'h' .. text(left)\n"                                                          \
    "  else\n"                                                                                     \
    "    if not value then\n"                                                                      \
    "      redis.call('del', readers)\n"                                                           \
    "      redis.call('set', key, '" REDLOCK_SHARED_VALUE "', 'PX', ttl)\n"                        \
    "    end\n"                                                                                    \
    "    answer[i] = list(key, readers, reader, ttl)\n"                                            \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

/* What is done to each share of a reader that is listed, and answered. */
#define OF_EACH_LISTED(reader, action)                                                             \
    READING                                                                                        \
    "for i = 1, #KEYS / 2 do\n"                                                                    \
    "  local key, readers, reader = KEYS[2 * i - 1], KEYS[2 * i], " reader "\n"                    \
    "  local value = redis.pcall('get', key)\n"                                                    \
    "  if not is_shared(key, value, readers) then\n"                                               \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  elseif listed(readers, reader) == 0 then\n"                                                 \
    "    answer[i] = 'm'\n"                                                                        \
    "  else\n" action "  end\n"                                                                    \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

#define SHARE_KEEP                                                                                 \
    OF_EACH_LISTED("ARGV[2 * i - 1]", "    answer[i] = list(key, readers, reader, ARGV[2 * i])\n")

#define SHARE_END                                                                                  \
    OF_EACH_LISTED("ARGV[i]", "    redis.call('zrem', readers, reader)\n"                          \
                              "    answer[i] = settle(key, readers)\n")

/* Of n keys and m arguments each: with a counter, or without. */
#define WRITES                                                                                     \
    WRITING                                                                                        \
    "for i = 1, #KEYS / n do\n"                                                                    \
    "  local k, a = n * (i - 1), m * (i - 1)\n"                                                    \
    "  local key, readers, writer = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]\n"                       \
    "  local token, intent = ARGV[a + 1], tonumber(ARGV[a + 3])\n"                                 \
    "  local value, count = redis.pcall('get', key), n == 3 and 0 or count_of(KEYS[k + 4], 1)\n"   \
    "  if not count then\n"                                                                        \
    "    answer[i] = 't'\n"                                                                        \
    "  elseif value == false or value == token then\n"                                             \
    "    if not value then redis.call('set', key, token, 'PX', ARGV[a + 2]) end\n"                 \
    "    redis.call('del', readers, writer)\n"                                                     \
    "    if n == 3 then\n"                                                                         \
    "      answer[i] = 'y'\n"                                                                      \
    "    else\n"                                                                                   \
    "      count = math.max(count, tonumber(ARGV[a + 4]))\n"                                       \
    "      raise(KEYS[k + 4], count, ARGV[a + 5])\n"                                               \
    "      answer[i] = grant(count)\n"                                                             \
    "    end\n"                                                                                    \
    "  else\n"                                                                                     \
    "    local left = math.max(redis.call('pttl', writer), 0)\n"                                   \
    "    if intent > left and is_shared(key, value, readers) then\n"                               \
    "      redis.call('set', writer, token, 'PX', ARGV[a + 3])\n"                                  \
    "    end\n"                                                                                    \
    "    answer[i] = otherwise(key, value)\n"                                                      \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return table.concat(answer)\n"

#define WRITE "local n, m = 3, 3\n" WRITES
#define WRITE_FENCED "local n, m = 4, 5\n" WRITES

#define INSPECT                                                                                    \
    COUNTERS                                                                                       \
    "local value = redis.pcall('get', KEYS[1])\n"                                                  \
    "local what, left, readers = 'f', 0, 0\n"                                                      \
    "if type(value) == 'table' then\n"                                                             \
    "  what, value = 't', ''\n"                                                                    \
    "elseif value then\n"                                                                          \
    "  left = redis.call('pttl', KEYS[1])\n"                                                       \
    "  what = left < 0 and 'p' or 'h'\n"                                                           \
    "end\n"                                                                                        \
    "if value == '" REDLOCK_SHARED_VALUE "' then\n"                                                \
    "  local time = redis.call('time')\n"                                                          \
    "  local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"                                  \
    "  readers = redis.pcall('zcount', KEYS[2], string.format('%.0f', now), '+inf')\n"             \
    "  if type(readers) == 'table' then readers = 0 end\n"                                         \
    "end\n"                                                                                        \
    "local count = count_of(KEYS[3], 0) or 0\n"                                                    \
    "left = math.max(left, 0)\n"                                                                   \
    "local numbers = string.format('%.0f %.0f %.0f', left, count, readers)\n"                      \
    "return what .. ' ' .. numbers .. ' ' .. (value or '')\n"

/*
 * Numbers below 2^53 are exact in Lua; microseconds since 1970 are, until the year 2255. A marker
 * that a server without memory cannot begin anew must be a restored one at the next beat too: the
 * caller is told again what it knew.
 */
#define BEAT                                                                                       \
    "local time = redis.call('time')\n"                                                            \
    "local now = time[1] * 1000000 + time[2]\n"                                                    \
    "local known = tonumber(ARGV[1])\n"                                                            \
    "local info = redis.pcall('info', 'server')\n"                                                 \
    "local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)')\n"                  \
    "local first, last = now, 0\n"                                                                 \
    "local value = redis.call('get', KEYS[1])\n"                                                   \
    "if value then\n"                                                                              \
    "  local f, l, r = string.match(value, '^(%d+):(%d+):(%x*)$')\n"                               \
    "  run = run or r\n"                                                                           \
    "  if f and r == run and tonumber(f) <= now and tonumber(l) >= known then\n"                   \
    "    first, last = tonumber(f), tonumber(l)\n"                                                 \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "local function confirm()\n"                                                                   \
    "  local text = string.format('%.0f:%.0f:%s', first, now, run or '')\n"                        \
    "  local why = redis.pcall('set', KEYS[1], text).err\n"                                        \
    "  if not why then\n"                                                                          \
    "    last = now\n"                                                                             \
    "  elseif string.find(why, 'OOM ', 1, true) or string.find(why, 'MISCONF ', 1, true) then\n"   \
    "    last = math.max(last, known)\n"                                                           \
    "  else\n"                                                                                     \
    "    return {err = why}\n"                                                                     \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "local refusal = now - last >= 1000000 and confirm()\n"                                        \
    "return refusal or string.format('%.0f %.0f %.0f', now, now - first, last)\n"

/* The SHA-1 is that of the text; a test has a server compute it. */
static const struct {
    const char *text;
    const char *sha;
} scripts[SCRIPT_COUNT] = {
    [SCRIPT_RELEASE] = {RELEASE, "62c1a2e0ef5bb03a6a9c8e87b14b4b450163bb31"},
    [SCRIPT_RENEW] = {RENEW, "96323ed452aefe02410349daba63fb092bc63d2d"},
    [SCRIPT_TAKE] = {TAKE, "80a12953ec2c842038b4fc8cf8f7aa44c1dd67fd"},
    [SCRIPT_KEEP] = {KEEP, "2237a870f3aee8e69f2407fa6f9dfa24814ab836"},
    [SCRIPT_STAY] = {STAY, "c7353dfb1b6dfdb061a409571522fa673b3cdeb6"},
    [SCRIPT_INSPECT] = {INSPECT, "80101475539e9aaebbdd73f01b4af9e9b7270f58"},
    [SCRIPT_PERMIT] = {PERMIT, "3023d7bdeb7aee2669f2e2613f62841a7a24e6ec"},
    [SCRIPT_SHARE] = {SHARE, "cb15bb58e5fff5134549b73c6a05abd9cb6595d2"},
    [SCRIPT_SHARE_KEEP] = {SHARE_KEEP, "e55180125781a1b58e212def1b05df42b55886ec"},
    [SCRIPT_SHARE_END] = {SHARE_END, "e034d45e1f46342ffae7967df2326dd600e12c09"},
    [SCRIPT_WRITE] = {WRITE, "d1c0bac48ef382a0124f2c72f5734a90e2c63c04"},
    [SCRIPT_WRITE_FENCED] = {WRITE_FENCED, "e4233f71df774c5fee460065d75f4efd427cdb5d"},
    [SCRIPT_BEAT] = {BEAT, "255cc0fd0994788a9def290296c9a57efd114d3a"},
};

const char *script_text(enum script script) {
    return scripts[script].text;
}

const char *script_sha(enum script script) {
    return scripts[script].sha;
}
