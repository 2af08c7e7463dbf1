-- Defines the reading of shared keys: now (ms, by the server's clock), listed; and those
-- of parts/shared.lua.
--@needs shared
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns the reader's expiry, or 0 if the reader is not listed or has expired.
local function listed(readers, reader)
  local till = tonumber(redis.call('zscore', readers, reader) or 0)
  return till >= now and till or 0
end
