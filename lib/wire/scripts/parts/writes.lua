-- Defines write, which is WRITE and WRITE_FENCED.
--@needs otherwise counters sharing

-- Takes the keys of locks of `n` keys and `m` arguments each: (3, 3) or (4, 5). Returns the answer.
local function write(n, m)
  for i = 1, #KEYS / n do
    local k, a = n * (i - 1), m * (i - 1)
    local key, readers, writer = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
    local token, intent = ARGV[a + 1], tonumber(ARGV[a + 3])
    local value, count = redis.pcall('get', key), n == 3 and 0 or count_of(KEYS[k + 4], 1)
    if not count then
      answer[i] = 'c'
    elseif value == false or value == token then
      if not value then redis.call('set', key, token, 'PX', ARGV[a + 2]) end
      redis.call('del', readers, writer)
      if n == 3 then
        answer[i] = 'y'
      else
        count = hinted(count, ARGV[a + 4])
        raise(KEYS[k + 4], count, ARGV[a + 5])
        answer[i] = grant(count)
      end
    else
      local left = math.max(redis.call('pttl', writer), 0)
      if intent > left and is_shared(key, value, readers, now) then
        redis.call('set', writer, token, 'PX', ARGV[a + 3])
      end
      answer[i] = otherwise(key, value)
    end
  end
  return table.concat(answer)
end
