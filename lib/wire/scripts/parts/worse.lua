-- Defines the choice among the items of a lock of several keys: worse.

-- Returns the item to answer of two keys of a lock: not h before h, and then the longer h.
local function worse(one, other)
  local a = one and string.match(one, '^h(%d+)')
  local b = string.match(other, '^h(%d+)')
  if one and (not a or (b and tonumber(a) >= tonumber(b))) then return one end
  return other
end
