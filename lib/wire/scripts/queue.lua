-- QUEUE takes each key for a waiter, if the key is free and nobody stands in line before the
-- waiter. Otherwise it gives the waiter a place in the key's queue, and the key, if free, to the
-- first in line. Asked again under the same value, QUEUE changes nothing but an earlier expiry of a
-- key that the waiter has by now. Without a channel no place is given.
--
-- keys:      key
-- arguments: for all: the channel or ''; then value, TTL in ms, claim in ms, '1' if fenced, TTL of
--            the counter in ms or 0, ticket
-- answer:    y, h<ms>, p or t for each key; y<n> if fenced; h<ms>q<waiters ahead> with a place,
--            h<ms>x where the caller has no right to the queue
--@include parts/otherwise.lua
--@include parts/counters.lua
--@include parts/queue.lua
--@include parts/passing.lua
--@include parts/places.lua

local channel = ARGV[1]
local flagged = channel == ''

-- Sets the flag for those who release, once in a call.
local function flag()
  if flagged then return end
  local left = redis.pcall('pttl', '@WAITING_KEY@')
  if type(left) == 'number' and left < @QUEUE_LIFE@ / 2 then
    redis.pcall('set', '@WAITING_KEY@', '1', 'PX', '@QUEUE_LIFE@')
  end
  flagged = true
end

-- Tells whether an error is the refusal of a right: by Redis 7.0, or by later versions.
local function is_forbidden(err)
  return string.find(err, "executing the script can't", 1, true) or
    string.find(err, 'ACL failure', 1, true)
end

-- Gives the waiter a place, if the caller has the rights for that. Returns what an answer of h says
-- of the place.
local function place(key, token, ticket, entry)
  local queue = queue_of(key)
  local added = channel ~= '' and redis.pcall('zadd', queue, ticket, entry)
  if type(added) == 'table' then return is_forbidden(added.err) and 'x' or '' end
  if not added then return '' end
  redis.call('pexpire', queue, '@QUEUE_LIFE@')
  flag()
  if added == 1 then leave(key, token, ticket, entry) end
  local ahead = redis.pcall('zrank', queue, entry)
  return 'q' .. string.format('%.0f', type(ahead) == 'number' and ahead or 0)
end

-- Returns the item of a key that is the waiter's, whose counter is to be at least `least`.
local function granted(key, fenced, idle, step, least)
  if fenced == '0' then return 'y' end
  local count = math.max(count_of(key .. '@COUNTER_SUFFIX@', step), least)
  raise(key .. '@COUNTER_SUFFIX@', count, idle)
  return grant(count)
end

for i, key in ipairs(KEYS) do
  local token, ttl, claim, fenced, idle, ticket = unpack(ARGV, 6 * i - 4, 6 * i + 1)
  local entry = table.concat({token, channel, claim, fenced, idle}, ' ')
  local value = redis.pcall('get', key)
  if fenced == '1' and not count_of(key .. '@COUNTER_SUFFIX@', 1) then
    answer[i] = 't'
  elseif value == token then
    flag()
    if redis.call('pttl', key) < tonumber(ttl) then redis.call('pexpire', key, ttl) end
    answer[i] = granted(key, fenced, idle, 0, 0)
  else
    local is_alone = not value and redis.pcall('exists', queue_of(key)) ~= 1
    local behind = is_alone and '' or place(key, token, ticket, entry)
    local others = value or not is_alone and pass(key, '', entry)
    if type(others) == 'number' then
      answer[i] = 'h' .. string.format('%.0f', others) .. behind
    elseif others then
      local item = otherwise(key, value or '')
      answer[i] = string.sub(item, 1, 1) == 'h' and item .. behind or item
    else
      redis.call('set', key, token, 'PX', ttl)
      if not is_alone then remove(key, entry) end
      answer[i] = granted(key, fenced, idle, 1, tonumber(ticket))
    end
  end
end
return table.concat(answer)
