-- LEAVE removes a waiter from the queue of each key, and releases each key that has the waiter's
-- value: passes it to the first waiter, or deletes it. Where readers hold the key, LEAVE admits the
-- readers that are now first in the queue.
--
-- keys:      key
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on
--@needs items queue releases

for i, key in ipairs(KEYS) do leave(key, ARGV[2 * i - 1], ARGV[2 * i]) end
local order = #KEYS > 1 and not lacks_time() and select(2, make().key_set())(2)
for at = 1, #KEYS do
  local i = order and order[at] or at
  answer[i] = release(KEYS[i], ARGV[2 * i - 1]) .. more()
end
return table.concat(answer)
