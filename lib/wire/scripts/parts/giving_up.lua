-- Defines the giving back of keys: give_up.
--@needs otherwise passing_on

-- Passes on a key that has the caller's value, or deletes the key. Where readers hold the key, lets
-- in the readers that are first in line by now. Returns the item.
local function give_up(key, token)
  local value = redis.pcall('get', key)
  if made and made.was_given(key, token) then return 'y' end
  if value == token then
    if pass(key, value) ~= true then redis.call('del', key) end
    return 'y'
  end
  if value == '@REDLOCK_SHARED_VALUE@' then pass(key, value) end
  return otherwise(key, value)
end
