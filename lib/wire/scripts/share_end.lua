-- SHARE_END ends each share of a reader that is still listed. The key expires with the last of the
-- readers that remain, or is deleted with the last one.
--
-- keys:      key, readers
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key
--@include parts/otherwise.lua
--@include parts/sharing.lua
--@include parts/keeping.lua

for i = 1, #KEYS / 2 do
  local key, readers, reader = KEYS[2 * i - 1], KEYS[2 * i], ARGV[i]
  local value = redis.pcall('get', key)
  if not is_shared(key, value, readers) then
    answer[i] = otherwise(key, value)
  elseif listed(readers, reader) == 0 then
    answer[i] = 'm'
  else
    redis.call('zrem', readers, reader)
    answer[i] = settle(key, readers)
  end
end
return table.concat(answer)
