-- Defines drop.
--@needs queue

-- Takes those entries out of the key's queue that are of the waiter, but for the entry `but`: a waiter
-- whose connection is new has a new channel, and with that another entry. Returns whether there was
-- one.
local function drop(key, value, entries, but)
  local removed
  for _, entry in ipairs(entries) do
    local is_mine = string.sub(entry, 1, #value + 1) == value .. ' '
    if is_mine and entry ~= but then removed = remove(key, entry) end
  end
  return removed
end
