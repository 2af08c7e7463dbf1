-- RELEASE deletes each key that has the caller's value (Redlock, "Basic algorithm"), or passes the
-- key on to the first waiter in its queue. A caller without the right to look for waiters deletes.
--
-- keys:      key
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key
--@include parts/otherwise.lua
--@include parts/counters.lua
--@include parts/queue.lua
--@include parts/passing.lua

local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1
for i, key in ipairs(KEYS) do
  local value = redis.pcall('get', key)
  if value == ARGV[i] then
    if not waiting or pass(key, value) ~= true then redis.call('del', key) end
    answer[i] = 'y'
  else
    answer[i] = otherwise(key, value)
  end
end
return table.concat(answer)
