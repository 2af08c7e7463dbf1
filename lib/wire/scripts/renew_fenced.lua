-- RENEW_FENCED renews each key of a fenced lock like RENEW, and raises its counter to `fence`. A
-- counter that has reached `fence` only gets a new expiry, which takes no memory: so a server that
-- is out of memory still renews its locks.
--
-- keys:      key, counter
-- arguments: value, ttl_ms, fence, counter_ttl_ms
-- answer:    y<n>, m, h<ms>, p, t or c for each key
--@needs items counters

-- Renews the counter's expiry, and writes the counter only to remove an expiry.
local function refresh(counter, count, idle)
  if idle ~= '0' then
    redis.call('pexpire', counter, idle)
  elseif redis.call('pttl', counter) >= 0 then
    raise(counter, count, idle)
  end
end

for i = 1, #KEYS / 2 do
  local key, counter, a = KEYS[2 * i - 1], KEYS[2 * i], 4 * i
  local value, count = redis.pcall('get', key), count_of(counter, 0)
  if not count then
    answer[i] = 'c'
  elseif value == ARGV[a - 3] then
    if redis.call('pttl', key) < tonumber(ARGV[a - 2]) then
      redis.call('pexpire', key, ARGV[a - 2])
    end
    local fence = tonumber(ARGV[a - 1])
    if count < fence then
      count = fence
      raise(counter, count, ARGV[a])
    else
      refresh(counter, count, ARGV[a])
    end
    answer[i] = grant(count)
  else
    answer[i] = not_owned(key, value)
  end
end
return table.concat(answer)
