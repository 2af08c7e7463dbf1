-- SHARE_END ends each share of a reader that is still listed. The key expires with the last of the
-- readers that remain. With the last one it is deleted, or passed on to the first in its queue. A
-- caller without the right to look for waiters deletes.
--
-- keys:      key, readers
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS is to go on
--@include parts/otherwise.lua
--@include parts/counters.lua
--@include parts/sharing.lua
--@include parts/keeping.lua
--@include parts/queue.lua
--@include parts/several.lua
--@include parts/fenced.lua
--@include parts/passing.lua
--@include parts/ending.lua

local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1
for i = 1, #KEYS / 2 do
  answer[i] = finish(KEYS[2 * i - 1], KEYS[2 * i], ARGV[i], waiting) .. more()
end
return table.concat(answer)
