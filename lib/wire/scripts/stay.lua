-- STAY releases each key that has the caller's value, but leaves the key in place for a while, with
-- a value that nobody holds: zeros in place of the token, and the same owner's label. A late
-- release or renewal does not find its token. The first waiter is notified when the key will be
-- free.
--
-- keys:      key
-- arguments: value, ttl_ms
-- answer:    y, m, h<ms>, p or t for each key
--@needs items queue

local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1
for i, key in ipairs(KEYS) do
  local value = redis.pcall('get', key)
  if value == ARGV[2 * i - 1] then
    -- Zeros in place of the token: no late release or renewal matches.
    local nobody = string.rep('0', 40) .. string.sub(value, 41)
    redis.call('set', key, nobody, 'PX', ARGV[2 * i])
    local time = waiting and redis.call('time')
    if time then announce(key, time[1] * 1000000 + time[2], ARGV[2 * i]) end
    answer[i] = 'y'
  else
    answer[i] = not_owned(key, value)
  end
end
return table.concat(answer)
