-- SHARE_RELEASE ends each share of a reader that is still listed. The key then expires with the
-- last of the remaining readers. If none remains, the key is deleted, or passed to the first waiter
-- in its queue. If the caller has no right to look for waiters, it is deleted.
--
-- keys:      key, readers
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on
--@needs items readers queue releases
needs_count = true

-- Without waiters at this server, keys need no look at their queues.
local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1
for i = 1, #KEYS / 2 do
  answer[i] = finish(KEYS[2 * i - 1], KEYS[2 * i], ARGV[i], waiting and pass) .. more()
end
return table.concat(answer)
