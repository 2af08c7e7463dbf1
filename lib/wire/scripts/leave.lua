-- LEAVE takes a waiter out of the queue of each key, and passes on each key that has the waiter's
-- value: to the first in line, or to nobody.
--
-- keys:      key
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key
--@include parts/otherwise.lua
--@include parts/counters.lua
--@include parts/queue.lua
--@include parts/passing.lua
--@include parts/places.lua

for i, key in ipairs(KEYS) do
  local token, ticket = unpack(ARGV, 2 * i - 1, 2 * i)
  local value = redis.pcall('get', key)
  leave(key, token, ticket)
  if value == token then
    if pass(key, value) ~= true then redis.call('del', key) end
    answer[i] = 'y'
  else
    answer[i] = otherwise(key, value)
  end
end
return table.concat(answer)
