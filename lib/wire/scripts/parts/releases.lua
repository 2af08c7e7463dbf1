-- Releases keys. Defines make, lacks_time, pass (as in parts/grants.lua), release. make returns a
-- table of pass, was_given and key_set (parts/key_sets.lua), which are defined when first needed:
-- most calls pass no key on, and the definitions take time.
--@needs items

local made

local function make()
  if not made then
    --@needs grants
    made = {pass = pass, was_given = was_given, key_set = key_set}
  end
  return made
end

local is_timeless

-- Returns whether the caller lacks the right to ask the time: then keys are deleted, not passed on.
local function lacks_time()
  if is_timeless == nil then is_timeless = redis.pcall('time').err ~= nil end
  return is_timeless
end

local function pass(key, caller, mine)
  return not lacks_time() and make().pass(key, caller, mine)
end

-- Passes a key that has the caller's value to the next waiter, or deletes it. Where readers hold
-- the key, admits the readers that are now first in the queue. Returns the item.
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
