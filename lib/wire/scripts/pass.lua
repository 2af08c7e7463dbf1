-- PASS goes on where a call stopped at its bound on queue entries (parts/queue.lua): it passes each
-- free key to the first waiter, and offers the free permits of a semaphore. Where readers hold the
-- key, it removes the dead ahead of a live writer, which it notifies to ask again, or of readers,
-- which it admits.
--
-- keys:      key
-- arguments: form
-- answer:    y for each key, with a '+' where PASS must go on
--@needs items queue releases

local function permit_queue()
  --@needs permits
  return permit_queue_of, offer_all
end

local function pass_permits(key)
  local permit_queue_of, offer_all = permit_queue()
  offer_all(permit_queue_of(key), key)
end

local function pass_key(key)
  local value = redis.pcall('get', key)
  if value == '@REDLOCK_SHARED_VALUE@' then
    local read = redis.pcall('time')
    if not read.err then announce(key, read[1] * 1000000 + read[2], redis.call('pttl', key)) end
    pass(key, value)
  elseif value == false and pass(key, '') ~= true then
    redis.call('del', key)
  end
end

for i, key in ipairs(KEYS) do
  if ARGV[i] == 'p' then pass_permits(key) else pass_key(key) end
  answer[i] = 'y' .. more()
end
return table.concat(answer)
