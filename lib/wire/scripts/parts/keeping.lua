-- Defines the writing of the list of readers: settle, list.
--@needs sharing

-- Drops expired readers, and has key and list expire with the last of the rest. Returns whether
-- there is any. A reader that expires in this millisecond keeps the key until the millisecond is
-- over: PEXPIREAT would delete the key now.
local function settle(key, readers)
  redis.call('zremrangebyscore', readers, '-inf', text(now - 1))
  local last = tonumber(redis.call('zrange', readers, -1, -1, 'withscores')[2])
  if last then
    local till = text(math.max(last, now + 1))
    redis.call('pexpireat', key, till)
    redis.call('pexpireat', readers, till)
  end
  return last
end

-- Lists the reader for `ttl` ms, or for longer if listed for longer. Returns the item.
-- Expired readers are dropped first: behind a write that takes no memory, a server that is out of
-- memory permits ZADD.
local function list(key, readers, reader, ttl)
  redis.call('zremrangebyscore', readers, '-inf', text(now - 1))
  local till = now + ttl
  if till > listed(readers, reader) then
    redis.call('zadd', readers, text(till), reader)
  end
  settle(key, readers)
  return 'y'
end
