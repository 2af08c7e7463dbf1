-- RENEW extends the expiry of each key that has the caller's value, and never shortens it (Redlock,
-- "Making the algorithm more reliable: extending the lock"). For keys without a counter.
--
-- keys:      key
-- arguments: value, ttl_ms
-- answer:    y, m, h<ms>, p or t for each key
--@needs items

-- One MGET reads all values. Where it has none, GET distinguishes a missing key from one that is
-- not a string; GET also serves callers without the right to MGET.
local values = redis.pcall('mget', unpack(KEYS))
for i, key in ipairs(KEYS) do
  local value = values[i] or redis.pcall('get', key)
  if value == ARGV[2 * i - 1] then
    if redis.call('pttl', key) < tonumber(ARGV[2 * i]) then
      redis.call('pexpire', key, ARGV[2 * i])
    end
    answer[i] = 'y'
  else
    answer[i] = not_owned(key, value)
  end
end
return table.concat(answer)
