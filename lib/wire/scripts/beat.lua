-- BEAT reads the server's clock and keeps the marker, a key of the value "<first>:<last>:<run_id>":
-- when a client found no marker, when a client last confirmed this one, and at which run of which
-- server. The marker is written at most once a second.
--
-- A marker begins anew if its last confirmation is before `known`: the marker was restored. So does
-- a marker of another run, which came with the memory of another server (a replica's, promoted or
-- not). Where scripts may not call INFO, the run is not compared. A server that is out of memory
-- (OOM) or cannot save (MISCONF) does not write the marker, and answers all the same.
--
-- keys:      the marker
-- arguments: the marker's last confirmation that the caller knows of, in us, or 0
-- answer:    "<clock> <age> <last>" in us: the server's clock, the marker's age, and its last
--            confirmation, always a time that was written. Where the marker is missing or restored
--            and could not be begun anew, the age is 0 and <last> is `known`: the next beat finds
--            the marker missing or restored, too.
--
-- Numbers below 2^53 are exact in Lua: microseconds since 1970 are until the year 2255.
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
local known = tonumber(ARGV[1])
local info = redis.pcall('info', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)')

local first, last = now, 0
local value = redis.call('get', KEYS[1])
if value then
  local f, l, r = string.match(value, '^(%d+):(%d+):(%x*)$')
  run = run or r
  if f and r == run and tonumber(f) <= now and tonumber(l) >= known then
    first, last = tonumber(f), tonumber(l)
  end
end

-- Writes the marker. Returns the server's refusal, if the caller is to see the refusal.
local function confirm()
  local text = string.format('%.0f:%.0f:%s', first, now, run or '')
  local why = redis.pcall('set', KEYS[1], text).err
  if not why then
    last = now
  elseif string.find(why, 'OOM ', 1, true) or string.find(why, 'MISCONF ', 1, true) then
    last = math.max(last, known)
  else
    return {err = why}
  end
end

local refusal = now - last >= 1000000 and confirm()
return refusal or string.format('%.0f %.0f %.0f', now, now - first, last)
