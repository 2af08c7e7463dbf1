-- LEAVE removes a waiter from the queue of each key, and releases each key that has the waiter's
-- value: passes it to the first waiter, or deletes it. Where readers hold the key, LEAVE admits the
-- readers that are now first in the queue.
--
-- keys:      key
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on
--@needs items queue releases

-- Returns the order in which to pass the keys on, as indexes.
local function order()
  if #KEYS == 1 then return {1} end
  local indexes = {}
  for i = 1, #KEYS do indexes[i] = i end
  if lacks_time() then return indexes end
  return select(2, make().key_set())(2)
end

for i, key in ipairs(KEYS) do leave(key, ARGV[2 * i - 1], ARGV[2 * i]) end
for _, i in ipairs(order()) do answer[i] = release(KEYS[i], ARGV[2 * i - 1]) .. more() end
return table.concat(answer)
