-- Defines the passing on of keys: pass. Needs parts/counters.lua and parts/queue.lua.
--
-- Clients that do not wait in line would never find a key free whose queue is never empty. So one
-- release in 128, the same at all servers, leaves the key to anybody for a while, which the member
-- "open <ms>" says, by the server's clock: it comes first.

-- Leaves the key to anybody for a while, if the caller's value says so and somebody waits: for a
-- thirty-second of the time that the first has waited, 1 to 100 ms.
local function open(key, caller, clock)
  if (tonumber(string.sub(caller, 39, 40), 16) or 255) > 1 then return end
  local entry, ticket = first_of(key)
  if not parts_of(entry or '') then return end
  local ms = math.max(1, math.min(100, math.floor((clock - ticket) / 32000)))
  if announce(key, clock, ms) then
    redis.pcall('zadd', queue_of(key), 0, string.format('open %.0f', clock / 1000 + ms))
  end
end

-- Gives the key, which had the value `caller` or none (''), to the first waiter whose client
-- listens, other than the entry `mine`, and pushes it to its channel: the key's expiry in ms, and
-- as the number the fence or 0. Returns true if a waiter has the key now, or the ms for which it is
-- left to anybody, or false if there is no waiter, or `mine` is the first. If not true, the key may
-- hold anything, and the caller deletes it. A waiter whose client does not listen loses its place.
-- The key is set before the push, since a server that is out of memory refuses to set it. Where
-- the caller has no right to the queue, or to publish, the queue stays as it is.
local function pass(key, caller, mine)
  local time = redis.call('time')
  local clock = time[1] * 1000000 + time[2]
  local now = math.floor(clock / 1000)
  open(key, caller, clock)
  while true do
    local entry, ticket = first_of(key)
    if not entry or entry == mine then return false end
    local left = (tonumber(string.match(entry, '^open (%d+)$')) or 0) - now
    if left > 0 then return left end
    local value, channel, claim, fenced, idle = parts_of(entry)
    local count = value and (fenced == '0' and 0 or count_of(key .. '@COUNTER_SUFFIX@', 1))
    if count then
      local till = now + claim
      local set = redis.pcall('set', key, value, 'PXAT', string.format('%.0f', till))
      if set.err then return false end
      if fenced == '1' then
        count = math.max(count, tonumber(ticket))
        raise(key .. '@COUNTER_SUFFIX@', count, idle)
      end
      local heard = tell(key, value, channel, till, clock, count)
      if not heard then return false end
      count = heard > 0
    end
    if not remove(key, entry) then return count or false end
    if count then return true end
  end
end
