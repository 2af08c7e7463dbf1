-- INSPECT tells who holds a key, and changes nothing. For one lock.
--
-- keys:      key, readers, counter
-- arguments: none
-- answer:    "<state> <ttl> <counter> <readers> <value>": f free, h held, p without expiry, t no
--            string; TTL in ms; 0 where there is no counter; readers whose share has not expired
--@include parts/counters.lua

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
local count = count_of(KEYS[3], 0) or 0
left = math.max(left, 0)
local numbers = string.format('%.0f %.0f %.0f', left, count, readers)
return what .. ' ' .. numbers .. ' ' .. (value or '')
