-- RELEASE deletes each key that has the caller's value (Redlock, "Basic algorithm"), or passes the
-- key to the first waiter in its queue. If the caller has no right to look for waiters, it deletes.
--
-- keys:      key
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on

-- Returns whether nobody waits, and all keys have their callers' values.
local function are_plain(values)
  if values[1] ~= false then return false end
  for i, value in ipairs(ARGV) do
    if values[i + 1] ~= value then return false end
  end
  return true
end

-- The common case: two commands for all keys take half the time of two per key. MGET returns an
-- error if the caller has no right to MGET or to the flag.
local values = redis.pcall('mget', '@WAITING_KEY@', unpack(KEYS))
if are_plain(values) then
  redis.call('del', unpack(KEYS))
  return string.rep('y', #KEYS)
end
--@needs items

-- Returns pass, was_given, key_set and more. They are defined only in calls with waiters, because
-- the definitions take time.
local function helpers()
  --@needs grants
  return pass, was_given, key_set, more
end

-- A caller that may not call TIME passes nothing on.
local waiting = values[1] ~= false and redis.pcall('exists', '@WAITING_KEY@') == 1 and
  not redis.pcall('time').err
local pass, was_given, key_set, more
if waiting then pass, was_given, key_set, more = helpers() end
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
  if waiting then answer[i] = answer[i] .. more() end
end
return table.concat(answer)
