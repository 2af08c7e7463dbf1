-- LEAVE takes a waiter out of the queue of each key, and passes on each key that has the waiter's
-- value: to the first in line, or to nobody. Where readers hold the key, it lets in the readers that
-- are first in line by now.
--
-- keys:      key
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS is to go on
--@needs items queue releases

-- Returns the order in which the keys are passed on, as their indexes.
local function order()
  if #KEYS == 1 then return {1} end
  return select(2, make().key_set())(2)
end

for i, key in ipairs(KEYS) do leave(key, ARGV[2 * i - 1], ARGV[2 * i]) end
for _, i in ipairs(order()) do answer[i] = release(KEYS[i], ARGV[2 * i - 1]) .. more() end
return table.concat(answer)
