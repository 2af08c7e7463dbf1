-- PASS goes on where a call has stopped at the bound of its entries (parts/queue.lua): passes on each
-- key that is free, lets in the readers that are first in line where readers hold the key, and
-- offers the permits of a semaphore that are free.
--
-- keys:      key
-- arguments: form of the lock's entry, or 'p' for a permit
-- answer:    y for each key, with a '+' where PASS is to go on
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
