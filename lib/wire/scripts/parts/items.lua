-- Defines the items of answers: text, not_owned, answer (the list of the items), worse.

-- Returns a whole number as digits.
local function text(number) return string.format('%.0f', number) end

-- Returns the item of a key that is not the caller's, from what GET returned. Throws an error of
-- the server other than WRONGTYPE.
local function not_owned(key, value)
  if value == false then return 'm' end
  if type(value) == 'table' then
    if string.find(value.err, 'WRONGTYPE', 1, true) then return 't' end
    error(value.err)
  end
  local left = redis.call('pttl', key)
  if left < 0 then return 'p' end
  return 'h' .. string.format('%.0f', left)
end
local answer = {}

-- Returns the worse of the items of two keys of a lock: p, t and c are worse than h, and a longer h
-- is worse than a shorter one.
local function worse(one, other)
  local a = one and string.match(one, '^h(%d+)')
  local b = string.match(other, '^h(%d+)')
  if one and (not a or (b and tonumber(a) >= tonumber(b))) then return one end
  return other
end
