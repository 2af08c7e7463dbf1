-- SHARE_LEAVE takes a reader out of the queue of each key, and ends each share of the reader as
-- SHARE_END does.
--
-- keys:      key, readers
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS is to go on
--@needs otherwise queue leaving ending
needs_count = true

for i = 1, #KEYS / 2 do
  leave(KEYS[2 * i - 1], ARGV[2 * i - 1], ARGV[2 * i])
end
for i = 1, #KEYS / 2 do
  answer[i] = finish(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], true) .. more()
end
return table.concat(answer)
