-- Defines the queues of waiters, and what waiters are told: queue_of, parts_of, open_ms, first_of,
-- digits, tell, remove, announce.
--
-- The sorted set "<key>@QUEUE_SUFFIX@" has a member for each waiter, its entry: "<value> <channel>
-- <claim> <form> <idle>", with its ticket as the score. The channel is the one that the waiter's
-- client subscribes to at this server; the claim is the time in ms for which a key that is pushed
-- is kept; the form is 0 for a lock, 1 for a fenced one, r for a reader, w for a writer, x for a
-- fenced writer, s for a lock of several keys, f for a fenced one of several; then the TTL of the
-- counter in ms or 0; of several keys also a blank, and their names (parts/several.lua). The ticket
-- is also the least fence.
-- Values come first, so that all servers have waiters with the same ticket in the same order.
-- The flag @WAITING_KEY@ stands while any key may have a queue, so that who releases need not look.

local function queue_of(key)
  return key .. '@QUEUE_SUFFIX@'
end

-- Returns the parts of an entry: value, channel, claim, form, idle, names.
local function parts_of(entry)
  return string.match(entry, '^(%S+) (%S+) (%d+) ([01rwxsf]) (%d+) ?(.*)$')
end

-- Returns the ms for which a member leaves the key to anybody (parts/passing.lua); for a place a
-- number below 0.
local function open_ms(member, instant)
  return (tonumber(string.match(member, '^open (%d+)$')) or 0) - instant
end

-- Returns the first member of the key's queue, and its score; nil where there is none, or where the
-- caller has no right to the queue.
local function first_of(key)
  local first = redis.pcall('zrange', queue_of(key), 0, 0, 'withscores')
  return first[1], first[2]
end

-- Returns a time in ms as digits, by parts that fit into 32 bits: '%.0f' takes four times as long.
local function digits(ms)
  return string.format('%d%03d', ms / 1000, ms % 1000)
end

-- Sends a waiter "<expiry> <clock in us> <number> <token> <key>", or "+<names>" for the last part if
-- there are names. Returns how many heard it, or false where the caller has no right to publish.
local function tell(key, value, channel, expiry, clock, number, names)
  local token = string.sub(value, 1, 40)
  local stamp = string.format('%d%06d', clock / 1000000, clock % 1000000)
  local count = number == 0 and '0' or string.format('%.0f', number)
  local message = digits(expiry) .. ' ' .. stamp .. ' ' .. count .. ' ' .. token
  local heard = redis.pcall('publish', channel, message .. (names and '+' .. names or ' ' .. key))
  return type(heard) == 'number' and heard
end

-- Removes a member. Returns false where the caller has no right to.
local function remove(key, member)
  return type(redis.pcall('zrem', queue_of(key), member)) == 'number'
end

-- Tells the first waiter to ask again after some ms: by a message with an expiry of 0, and the time
-- as the number. Returns whether it heard; false while the key is left to anybody. Waiters whose
-- clients do not listen lose their places.
local function announce(key, clock, ms)
  local entry = first_of(key)
  while entry and open_ms(entry, clock / 1000) <= 0 do
    local value, channel = parts_of(entry)
    local heard = not value and 0 or tell(key, value, channel, 0, clock, ms)
    if heard ~= 0 then return heard and true end
    if not remove(key, entry) then return false end
    entry = first_of(key)
  end
  return false
end
