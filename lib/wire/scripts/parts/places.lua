-- Defines the giving up of places: leave. Needs parts/queue.lua.

-- Takes the places of a waiter out of the key's queue, but for the entry `but`: a waiter whose
-- connection is new has a new channel, and with that another entry.
local function leave(key, value, ticket, but)
  for _, entry in ipairs(redis.pcall('zrange', queue_of(key), ticket, ticket, 'byscore')) do
    local is_mine = string.sub(entry, 1, #value + 1) == value .. ' '
    if is_mine and entry ~= but then remove(key, entry) end
  end
end
