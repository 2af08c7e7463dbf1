-- Defines the giving up of places: leave.
--@needs places queue

-- Takes the places of a waiter out of the key's queue. Members that are no place go with the last
-- one. Returns whether there was a place.
local function leave(key, value, ticket)
  local removed = drop(key, value, redis.pcall('zrange', queue_of(key), ticket, ticket, 'byscore'))
  local rest = removed and redis.pcall('zrange', queue_of(key), 0, 2, 'withscores') or {}
  for i = 1, rest[#rest] == '0' and #rest or 0, 2 do remove(key, rest[i]) end
  return removed
end
