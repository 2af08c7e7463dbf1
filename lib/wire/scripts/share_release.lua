-- SHARE_RELEASE ends each share of a reader that is still listed. The key expires with the last of
-- the readers that remain. With the last one it is deleted, or passed on to the first in its queue.
-- A caller without the right to look for waiters deletes.
--
-- keys:      key, readers
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS is to go on
--@needs items readers queue releases
needs_count = true

local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1
for i = 1, #KEYS / 2 do
  answer[i] = finish(KEYS[2 * i - 1], KEYS[2 * i], ARGV[i], waiting and pass) .. more()
end
return table.concat(answer)
