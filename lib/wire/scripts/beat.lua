-- BEAT reads the server's clock and maintains the marker, a key with the value
-- "<first>:<last>:<run_id>": when the marker was created, when a client last confirmed it, and the
-- run of the server at which it was written. The marker is written at most once a second. Its age
-- shows clients how long the server has kept its memory.
--
-- A marker that the caller does not know restarts, unless it is younger than what the caller knows.
-- It is not known if its last confirmation is older (it was restored), if it began at another time
-- (SWAPDB brought another database), or if the server's replication id is another one (the memory
-- is that of a replica, even if for a moment, and of this same server). A marker of another run
-- also restarts: it came with the memory of another server. So does one that was confirmed in the
-- future: the server's clock jumped ahead, keys expired, and the clock came back. Where scripts may
-- not call INFO, run and replication id are not compared. A server that is out of memory (OOM) or
-- cannot save (MISCONF) does not write the marker, but still answers.
--
-- A replication id also changes, with no loss, when the first replica connects, or long after the
-- last one left. Unlike a replica that was promoted, such a server has no second id. (A caller
-- whose last beat was some seconds ago distrusts it anyway: lib/core/trust.c.)
--
-- keys:      the marker
-- ARGV:      what the caller knows: the marker's last confirmation and its beginning, in us, or 0;
--            the replication id, or ""; the run of the server on this connection, or ""
-- answer:    "<clock> <age> <last> <role> <id>": the server's clock, the marker's age, and its last
--            confirmation, always a time that was written, all in us; "master", "slave", or "-" if
--            unknown; the replication id, or "-". If the marker is missing or restored and could
--            not be restarted, the age is 0 and <last> is `known`, so that the next beat finds the
--            marker missing or restored too. A replica's marker is its master's: it is left alone,
--            and its age is given as 0.
--
-- Numbers below 2^53 are exact in Lua: microseconds since 1970 stay below that until the year 2255.
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
local known, known_first = tonumber(ARGV[1]), tonumber(ARGV[2])
local known_id, run = ARGV[3], ARGV[4]

local info = redis.pcall('info', 'replication')
info = type(info) == 'string' and info or ''
local role = string.match(info, 'role:(%a+)') or '-'
local id = string.match(info, 'master_replid:(%x+)') or '-'
if role == 'slave' then
  return string.format('%.0f 0 %.0f %s %s', now, known, role, id)
end
if run == '' then
  local server = redis.pcall('info', 'server')
  run = type(server) == 'string' and string.match(server, 'run_id:(%x+)')
end

-- Returns whether the server still has the memory of the replication id that the caller knows: its
-- id is the same, or has changed without the second id that a promoted replica has.
local function has_known_id()
  return known_id == '' or id == '-' or id == known_id or
    string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true) ~= nil
end

local first, last = now, 0
local value = redis.call('get', KEYS[1])
if value then
  local f, l, r = string.match(value, '^(%d+):(%d+):(%x*)$')
  run = run or r
  f, l = tonumber(f), tonumber(l)
  -- A confirmation up to 10 ms in the future is kept: the client detects such a clock step itself.
  if f and r == run and f <= now and l <= now + 10000 and l >= known and
    (f > known or f == known_first and has_known_id()) then
    first, last = f, l
  end
end

-- Writes the marker. Returns the server's error unless the server is only out of memory or unable
-- to save: then `last` falls back to what the caller knows, and the beat still answers.
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
return refusal or string.format('%.0f %.0f %.0f %s %s', now, now - first, last, role, id)
