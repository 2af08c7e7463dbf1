-- Defines `answer`, the list of items, and `otherwise`.

-- Returns the item of a key whose value, as GET answered, is not the caller's. Throws an error of
-- the server other than WRONGTYPE.
local function otherwise(key, value)
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
