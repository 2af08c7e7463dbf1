-- Shared locks, of readers and writers. Defines needs_count, readers_in, is_shared, now (in ms, by
-- the server's clock), listed, expire, list, finish, write. The list of a key's readers is the
-- sorted set "<key>@READERS_SUFFIX@", with their expiries as scores.
--@needs items counters

-- If a script sets needs_count, it throws when the caller has no right to count readers. For the
-- other scripts a key whose readers the caller cannot count is not shared.
local needs_count = false

-- Returns the number of readers that are listed at `instant`, in ms.
local function readers_in(readers, instant)
  local count = redis.pcall('zcount', readers, text(instant), '+inf')
  if type(count) == 'number' then return count end
  if needs_count and not string.find(count.err, 'WRONGTYPE', 1, true) then error(count.err) end
  return 0
end

-- Returns whether readers hold the key at `instant`, in ms. A stale list without its key, or a key
-- of that value without a listed reader, does not count.
local function is_shared(key, value, readers, instant)
  if value ~= '@REDLOCK_SHARED_VALUE@' then return false end
  if redis.call('pttl', key) < 0 then return false end
  return readers_in(readers, instant) > 0
end

local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns the reader's expiry, or 0 if the reader is not listed or has expired.
local function listed(readers, reader)
  local till = tonumber(redis.call('zscore', readers, reader) or 0)
  return till >= now and till or 0
end

-- Removes expired readers, and makes key and list expire with the last of the rest. Returns whether
-- any is left. A reader that expires in this millisecond keeps the key until the millisecond is
-- over: PEXPIREAT would delete the key at once.
local function expire(key, readers)
  redis.call('zremrangebyscore', readers, '-inf', text(now - 1))
  local last = tonumber(redis.call('zrange', readers, -1, -1, 'withscores')[2])
  if last then
    local till = text(math.max(last, now + 1))
    redis.call('pexpireat', key, till)
    redis.call('pexpireat', readers, till)
  end
  return last
end

-- Lists the reader for `ttl` ms, or longer if it is listed for longer; is_first: as the first
-- reader of a free key. Returns the item.
-- Expired readers are removed first: after a write that takes no memory, a server that is out of
-- memory permits ZADD. The key is set last: if the caller lacks a right to the list, the script
-- ends before, and leaves no key that nobody could release. A list without its key does not count.
local function list(key, readers, reader, ttl, is_first)
  if is_first then
    -- A right that expire() lacks shows here: after ZADD the list would stay for ever.
    redis.call('zrange', readers, 0, 0, 'withscores')
    redis.call('pexpireat', readers, text(now + ttl))
    redis.call('del', readers)
  end
  redis.call('zremrangebyscore', readers, '-inf', text(now - 1))
  local till = now + ttl
  if till > listed(readers, reader) then
    redis.call('zadd', readers, text(till), reader)
  end
  expire(key, readers)
  if is_first then redis.call('set', key, '@REDLOCK_SHARED_VALUE@', 'PX', ttl) end
  return 'y'
end

-- Removes a reader from the list. With the last reader the key is passed on by `pass` (false:
-- nobody waits), or deleted. Returns the item.
local function finish(key, readers, reader, pass)
  local value = redis.pcall('get', key)
  if not is_shared(key, value, readers, now) then return not_owned(key, value) end
  if listed(readers, reader) == 0 then return 'm' end
  redis.call('zrem', readers, reader)
  if not expire(key, readers) and not (pass and pass(key, reader) == true) then
    redis.call('del', key, readers)
  end
  return 'y'
end

-- Takes keys for writers, with `n` KEYS and `m` arguments for each: (3, 3) is WRITE, (4, 5) is
-- WRITE_FENCED. Returns the answer.
local function write(n, m)
  for i = 1, #KEYS / n do
    local k, a = n * (i - 1), m * (i - 1)
    local key, readers, writer = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
    local token, intent = ARGV[a + 1], tonumber(ARGV[a + 3])
    local value = redis.pcall('get', key)
    local count = n == 3 and 0 or count_of(KEYS[k + 4], @FENCE_RANGE@)
    if not count then
      answer[i] = 'c'
    elseif value == false or value == token then
      if not value then redis.call('set', key, token, 'PX', ARGV[a + 2]) end
      redis.call('del', readers, writer)
      if n == 3 then
        answer[i] = 'y'
      else
        count = raised(count, ARGV[a + 4])
        raise(KEYS[k + 4], count, ARGV[a + 5])
        answer[i] = grant(count)
      end
    else
      local left = math.max(redis.call('pttl', writer), 0)
      if intent > left and is_shared(key, value, readers, now) then
        redis.call('set', writer, token, 'PX', ARGV[a + 3])
      end
      answer[i] = not_owned(key, value)
    end
  end
  return table.concat(answer)
end
