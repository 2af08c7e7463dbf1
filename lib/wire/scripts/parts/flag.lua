-- Defines the flag for those who release: channel, flag, is_forbidden. The first argument of the
-- script is the channel of the caller's client, or ''.

local channel = ARGV[1]
local flagged = channel == ''

-- Sets the flag for those who release, once in a call.
local function flag()
  if flagged then return end
  local left = redis.pcall('pttl', '@WAITING_KEY@')
  if type(left) == 'number' and left < @QUEUE_LIFE@ / 2 then
    redis.pcall('set', '@WAITING_KEY@', '1', 'PX', '@QUEUE_LIFE@')
  end
  flagged = true
end

-- Tells whether an error is the refusal of a right: by Redis 7.0, or by later versions.
local function is_forbidden(err)
  return string.find(err, "executing the script can't", 1, true) or
    string.find(err, 'ACL failure', 1, true)
end
