-- SHARE_LEAVE removes a reader from the queue of each key, and ends each share of the reader like
-- SHARE_RELEASE.
--
-- keys:      key, readers
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on
--@needs items readers queue releases
needs_count = true

for i = 1, #KEYS / 2 do
  leave(KEYS[2 * i - 1], ARGV[2 * i - 1], ARGV[2 * i])
end
for i = 1, #KEYS / 2 do
  answer[i] = finish(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], pass) .. more()
end
return table.concat(answer)
