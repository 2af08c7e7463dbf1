-- RELEASE deletes each key that has the caller's value (Redlock, "Basic algorithm"), or passes the
-- key to the first waiter in its queue. If the caller has no right to look for waiters, it deletes.
--
-- keys:      key
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on

-- The number of keys that this call has removed from the list of those with queues.
local unlisted = 0

-- Returns whether all keys have their callers' values, and none has a queue.
local function are_plain(values)
  for i, value in ipairs(ARGV) do
    if values[i + 1] ~= value then return false end
  end
  if values[1] == false then return true end
  if #KEYS == 1 then return redis.pcall('exists', KEYS[1] .. '@QUEUE_SUFFIX@') == 0 end
  -- Somebody waits at this server, mostly for other keys. To remove many keys from the list costs a
  -- third of a look at their queues; those that still have one in the end are listed again below.
  unlisted = redis.pcall('zrem', '@QUEUES_KEY@', unpack(KEYS))
  return unlisted == 0
end

-- The common case: two commands for all keys take half the time of two per key. MGET returns an
-- error if the caller has no right to MGET or to the flag.
local values = redis.pcall('mget', '@WAITING_KEY@', unpack(KEYS))
if are_plain(values) then
  redis.call('del', unpack(KEYS))
  return string.rep('y', #KEYS)
end
--@needs items

-- Returns pass, was_given, key_set, more, and a function that lists a key again if it has a queue.
-- They are defined only in calls with waiters, because the definitions take time.
local function helpers()
  --@needs grants
  local function keep_listed(key)
    if unlisted ~= 0 and redis.pcall('exists', queue_of(key)) ~= 0 then relist(key) end
  end
  return pass, was_given, key_set, more, keep_listed
end

-- A caller that may not call TIME passes nothing on.
local waiting = (values[1] or values.err and redis.pcall('exists', '@WAITING_KEY@') == 1) and
  not redis.pcall('time').err
local pass, was_given, key_set, more, keep_listed
if waiting then pass, was_given, key_set, more, keep_listed = helpers() end
local order = waiting and #KEYS > 1 and select(2, key_set())(1)
for at = 1, #KEYS do
  local i = order and order[at] or at
  local key = KEYS[i]
  local is_whole = not waiting and values[i + 1] == ARGV[i]
  local value = is_whole and ARGV[i] or redis.pcall('get', key)
  if waiting and was_given(key, ARGV[i]) then
    answer[i] = 'y'
  elseif value == ARGV[i] then
    if not waiting or pass(key, value) ~= true then redis.call('del', key) end
    answer[i] = 'y'
  else
    answer[i] = not_owned(key, value)
  end
  if waiting then
    keep_listed(key)
    answer[i] = answer[i] .. more()
  end
end
return table.concat(answer)
