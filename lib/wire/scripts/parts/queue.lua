-- Defines the queues of waiters, and what waiters are told: queue_of, parts_of, first_of, tell,
-- remove, announce.
--
-- The sorted set "<key>@QUEUE_SUFFIX@" has a member for each waiter, its entry: "<value> <channel>
-- <claim> <fenced> <idle>", with its ticket as the score. The channel is the one that the waiter's
-- client subscribes to at this server; the claim is the time in ms for which a key that is pushed
-- is kept; '1' if fenced; the TTL of the counter in ms or 0. The ticket is also the least fence.
-- Values come first, so that all servers have waiters with the same ticket in the same order.
-- The flag @WAITING_KEY@ stands while any key may have a queue, so that who releases need not look.

local function queue_of(key)
  return key .. '@QUEUE_SUFFIX@'
end

-- Returns the parts of an entry: value, channel, claim, fenced, idle.
local function parts_of(entry)
  return string.match(entry, '^(%S+) (%S+) (%d+) ([01]) (%d+)$')
end

-- Returns the first member of the key's queue, and its score; nil where there is none, or where the
-- caller has no right to the queue.
local function first_of(key)
  local first = redis.pcall('zrange', queue_of(key), 0, 0, 'withscores')
  return first[1], first[2]
end

-- Sends a waiter "<expiry> <clock in us> <number> <token> <key>". Returns how many heard it, or
-- false where the caller has no right to publish.
local function tell(key, value, channel, expiry, clock, number)
  local text = string.format('%.0f %.0f %.0f %s ', expiry, clock, number, string.sub(value, 1, 40))
  local heard = redis.pcall('publish', channel, text .. key)
  return type(heard) == 'number' and heard
end

-- Removes a member. Returns false where the caller has no right to.
local function remove(key, member)
  return type(redis.pcall('zrem', queue_of(key), member)) == 'number'
end

-- Tells the first waiter to ask again after some ms: by a message with an expiry of 0, and the time
-- as the number. Returns whether it heard. Waiters whose clients do not listen lose their places.
local function announce(key, clock, ms)
  local entry = first_of(key)
  while entry do
    local value, channel = parts_of(entry)
    local heard = not value and 0 or tell(key, value, channel, 0, clock, ms)
    if heard ~= 0 then return heard and true end
    if not remove(key, entry) then return false end
    entry = first_of(key)
  end
  return false
end
