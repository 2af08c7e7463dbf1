-- Defines the giving up of places: leave. Needs parts/queue.lua.

-- Takes the places of a waiter out of the key's queue, but for the entry `but`: a waiter whose
-- connection is new has a new channel, and with that another entry. What says that the key is left
-- to anybody (parts/passing.lua) goes with the last place.
local function leave(key, value, ticket, but)
  local removed
  for _, entry in ipairs(redis.pcall('zrange', queue_of(key), ticket, ticket, 'byscore')) do
    local is_mine = string.sub(entry, 1, #value + 1) == value .. ' '
    if is_mine and entry ~= but then removed = remove(key, entry) end
  end
  local rest = removed and redis.pcall('zrange', queue_of(key), 0, 1, 'withscores') or {}
  if #rest == 2 and rest[2] == '0' then remove(key, rest[1]) end
end
