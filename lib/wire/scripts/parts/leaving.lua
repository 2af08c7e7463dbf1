-- Defines the giving up of places: leave. Needs parts/queue.lua and parts/places.lua.

-- Takes the places of a waiter out of the key's queue. What says that the key is left to anybody
-- (parts/passing.lua) goes with the last place. Returns whether there was a place.
local function leave(key, value, ticket)
  local removed = drop(key, value, redis.pcall('zrange', queue_of(key), ticket, ticket, 'byscore'))
  local rest = removed and redis.pcall('zrange', queue_of(key), 0, 1, 'withscores') or {}
  if #rest == 2 and rest[2] == '0' then remove(key, rest[1]) end
  return removed
end
