-- SHARE_LEAVE takes a reader out of the queue of each key, and ends each share of the reader as
-- SHARE_END does.
--
-- keys:      key, readers
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS is to go on
--@include parts/otherwise.lua
--@include parts/counters.lua
--@include parts/sharing.lua
--@include parts/keeping.lua
--@include parts/queue.lua
--@include parts/several.lua
--@include parts/fenced.lua
--@include parts/passing.lua
--@include parts/places.lua
--@include parts/leaving.lua
--@include parts/ending.lua

for i = 1, #KEYS / 2 do
  leave(KEYS[2 * i - 1], ARGV[2 * i - 1], ARGV[2 * i])
end
for i = 1, #KEYS / 2 do
  answer[i] = finish(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], true) .. more()
end
return table.concat(answer)
