-- Defines readers_in, is_shared. A script that sets needs_count fails where the caller has no right
-- to count readers: for others a key that the caller cannot look into is no share.
--@needs text
local needs_count = false

-- Returns the number of listed readers at `now`, in ms.
local function readers_in(readers, now)
  local count = redis.pcall('zcount', readers, text(now), '+inf')
  if type(count) == 'number' then return count end
  if needs_count and not string.find(count.err, 'WRONGTYPE', 1, true) then error(count.err) end
  return 0
end

-- Tells whether readers hold the key at `now`, in ms: a stale list without its key, and a key of
-- that value without a listed reader, are no share.
local function is_shared(key, value, readers, now)
  if value ~= '@REDLOCK_SHARED_VALUE@' then return false end
  if redis.call('pttl', key) < 0 then return false end
  return readers_in(readers, now) > 0
end
