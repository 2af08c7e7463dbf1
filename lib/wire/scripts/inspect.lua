-- INSPECT reports the holder of a key and its waiters, and changes nothing. If nobody waits for the
-- key, it reports the waiters for permits of the semaphore of that name. For one lock.
--
-- keys:      key, readers, counter
-- arguments: waiters_named (0: the queue is not read)
-- answer:    "<state> <ttl> <counter> <readers> <waiters> <named> <ticket> <waiter> ... <value>":
--            state f free, h held, p without expiry, t not a string, or c counter out of range
--            (whatever the key is); TTL in ms; counter, 0 for none; number of readers whose share
--            has not expired; number of queue entries, 0 if the caller has no right to the queue;
--            number of those named, and their tickets and values; the first 4096 bytes of the
--            key's value, which may be any client's: a reply has room for 8192.
--@needs counters

-- Returns the number of queue entries and the first waiters, as parts of the answer. Waiters whose
-- value is longer than a token, a '/' and an owner are not named. Members with a score below 1 are
-- not entries (parts/grants.lua).
local function waiters_of(most)
  local queue = KEYS[1] .. '@QUEUE_SUFFIX@'
  local length = most > 0 and redis.pcall('zcount', queue, 1, '+inf') or 0
  if most > 0 and length == 0 then
    queue = KEYS[1] .. '@PERMITS_SUFFIX@'
    length = redis.pcall('zcount', queue, 1, '+inf')
  end
  if length == 0 or type(length) == 'table' then return '0 0 ' end
  local first = redis.pcall('zrange', queue, 0, most + 1, 'withscores')
  local named, waiters = 0, ''
  for i = 1, #first, 2 do
    local value = string.match(first[i], '^(%S+) ')
    local ticket = math.min(math.max(tonumber(first[i + 1]) or 0, 0), 2 ^ 53 - 1)
    if value and #value <= 105 and ticket >= 1 and named < most then
      named, waiters = named + 1, waiters .. string.format('%.0f ', ticket) .. value .. ' '
    end
  end
  return string.format('%.0f %.0f ', length, named) .. waiters
end

local value = redis.pcall('get', KEYS[1])
local what, left, readers = 'f', 0, 0
if type(value) == 'table' then
  what, value = 't', ''
elseif value then
  left = redis.call('pttl', KEYS[1])
  what = left < 0 and 'p' or 'h'
end
if value == '@REDLOCK_SHARED_VALUE@' then
  local time = redis.call('time')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  readers = redis.pcall('zcount', KEYS[2], string.format('%.0f', now), '+inf')
  if type(readers) == 'table' then readers = 0 end
end
local count = count_of(KEYS[3], 0)
if not count then what, count = 'c', 0 end
left = math.max(left, 0)
local numbers = string.format('%.0f %.0f %.0f ', left, count, readers)
return what .. ' ' .. numbers .. waiters_of(tonumber(ARGV[1])) .. string.sub(value or '', 1, 4096)
