-- SHARE takes each key for a reader, together with other readers. The key then has the value
-- '@REDLOCK_SHARED_VALUE@', and the sorted set `readers` lists each reader's value with its expiry
-- in ms by the server's clock; key and list expire with the last reader. A reader that is listed
-- stays listed. With a step of 1 no other reader is admitted while a writer's intent lasts, nor to
-- a shared key while a waiter whose client listens is in the queue.
--
-- keys:      key, readers, writer (the intent)
-- arguments: value, ttl_ms, step
-- answer:    y, h<ms>, p or t for each key; if an intent refuses, h<ms> with the intent's TTL
--@needs items readers queue
needs_count = true

local waiting = redis.pcall('exists', '@WAITING_KEY@') == 1

-- Returns whether a waiter is in the key's queue, and notifies it to ask again when the readers may
-- have gone. Otherwise readers that do not queue could keep waiters out for ever.
local function is_awaited(key)
  local clock = time[1] * 1000000 + time[2]
  return waiting and announce(key, clock, redis.call('pttl', key))
end

for i = 1, #KEYS / 3 do
  local key, readers, writer = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local reader, ttl, step = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local value = redis.pcall('get', key)
  -- Fails where the caller could neither keep a share nor give it back.
  readers_in(readers, now)
  local left = step == '1' and redis.call('pttl', writer) or -1
  if value ~= false and not is_shared(key, value, readers, now) then
    answer[i] = not_owned(key, value)
  elseif left >= 0 and not (value and listed(readers, reader) > 0) then
    answer[i] = 'h' .. text(left)
  elseif step == '1' and value and listed(readers, reader) == 0 and is_awaited(key) then
    answer[i] = not_owned(key, value)
  else
    answer[i] = list(key, readers, reader, ttl, not value)
  end
end
return table.concat(answer)
