-- Defines the giving up of keys: pass of parts/grants.lua; make, which returns a table of pass, and
-- of was_given and key_set (parts/key_sets.lua); release. What is in the table is made when it is
-- first needed: most calls pass no key on, and the definitions take time.
--@needs items

local made

local function make()
  if not made then
    --@needs grants
    made = {pass = pass, was_given = was_given, key_set = key_set}
  end
  return made
end

local function pass(key, caller, mine)
  return make().pass(key, caller, mine)
end

-- Passes on a key that has the caller's value, or deletes the key. Where readers hold the key, lets
-- in the readers that are first in line by now. Returns the item.
local function release(key, token)
  local value = redis.pcall('get', key)
  if made and made.was_given(key, token) then return 'y' end
  if value == token then
    if pass(key, value) ~= true then redis.call('del', key) end
    return 'y'
  end
  if value == '@REDLOCK_SHARED_VALUE@' then pass(key, value) end
  return not_owned(key, value)
end
