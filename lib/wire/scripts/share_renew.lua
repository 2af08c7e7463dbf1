-- SHARE_RENEW extends each share of a reader that is still listed, and never shortens one.
--
-- keys:      key, readers
-- arguments: value, ttl_ms
-- answer:    y, m, h<ms>, p or t for each key
--@needs items readers
needs_count = true

for i = 1, #KEYS / 2 do
  local key, readers, reader = KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1]
  local value = redis.pcall('get', key)
  if not is_shared(key, value, readers, now) then
    answer[i] = not_owned(key, value)
  elseif listed(readers, reader) == 0 then
    answer[i] = 'm'
  else
    answer[i] = list(key, readers, reader, ARGV[2 * i])
  end
end
return table.concat(answer)
