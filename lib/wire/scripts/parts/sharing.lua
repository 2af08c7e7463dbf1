-- Defines the reading of shared keys: now (ms, by the server's clock), text, is_shared, listed.
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end

-- Tells whether readers hold the key: a stale list without its key, and a key of that value without
-- a listed reader, are no share.
local function is_shared(key, value, readers)
  if value ~= '@REDLOCK_SHARED_VALUE@' then return false end
  if redis.call('pttl', key) < 0 then return false end
  local count = redis.pcall('zcount', readers, text(now), '+inf')
  return type(count) == 'number' and count > 0
end

-- Returns the reader's expiry, or 0 if the reader is not listed or has expired.
local function listed(readers, reader)
  local till = tonumber(redis.call('zscore', readers, reader) or 0)
  return till >= now and till or 0
end
