-- RELEASE deletes each key that has the caller's value (Redlock, "Basic algorithm"), or passes the
-- key on to the first waiter in its queue. A caller without the right to look for waiters deletes.
--
-- keys:      key
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key
--@include parts/otherwise.lua

-- Returns pass, was_given and several, which only calls with waiters define: the definitions take
-- time.
local function passing()
--@include parts/counters.lua
--@include parts/queue.lua
--@include parts/shared.lua
--@include parts/several.lua
--@include parts/fenced.lua
--@include parts/passing.lua
  return pass, was_given, several
end

local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1
local pass, was_given, several
if waiting then pass, was_given, several = passing() end
local order = waiting and #KEYS > 1 and select(2, several())(1)
for at = 1, #KEYS do
  local i = order and order[at] or at
  local key = KEYS[i]
  local value = redis.pcall('get', key)
  if waiting and was_given(key, ARGV[i]) then
    answer[i] = 'y'
  elseif value == ARGV[i] then
    if not waiting or pass(key, value) ~= true then redis.call('del', key) end
    answer[i] = 'y'
  else
    answer[i] = otherwise(key, value)
  end
end
return table.concat(answer)
