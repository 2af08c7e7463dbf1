-- Defines hinted.

-- Returns the larger of a count and the caller's hint, which is taken up to a day ahead of the
-- server's clock: the clock of one client does not put a key's numbers further.
local function hinted(count, hint)
  local seconds, micros = unpack(redis.call('time'))
  return math.max(count, math.min(tonumber(hint), seconds * 1000000 + micros + @HINT_AHEAD@))
end
