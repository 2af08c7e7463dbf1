-- BEAT reads the server's clock and keeps the marker, a key of the value "<first>:<last>:<run_id>":
-- when a client found no marker, when a client last confirmed this one, and at which run of which
-- server. The marker is written at most once a second.
--
-- A marker begins anew if it is not the one that the caller knows, and not younger than what the
-- caller knows: its last confirmation is older (it was restored), it began at another time (it came
-- with another database: SWAPDB), or the server's replication id is another one (the memory is that
-- of a replica, be it for a moment and of this very server). So does a marker of another run, which
-- came with the memory of another server; and one that was confirmed in the future: the server's
-- clock went ahead, keys expired, and it came back. Where scripts may not call INFO, neither run nor
-- replication id is compared. A server that is out of memory (OOM) or cannot save (MISCONF) does
-- not write the marker, and answers all the same.
--
-- A replication id also changes when the first replica comes, or long after the last one has left,
-- and loses nothing then: unlike a replica that becomes a master, such a server has no second id. (A
-- caller that did not look for some seconds distrusts it all the same: lib/core/trust.c.)
--
-- keys:      the marker
-- arguments: what the caller knows: the marker's last confirmation and its beginning, in us, or 0;
--            the replication id, or ""; the run of the server on this connection, or ""
-- answer:    "<clock> <age> <last> <role> <id>" in us: the server's clock, the marker's age, and its
--            last confirmation, always a time that was written; "master", "slave", or "-" if not
--            known; the replication id, or "-". Where the marker is missing or restored and could
--            not be begun anew, the age is 0 and <last> is `known`: the next beat finds the marker
--            missing or restored, too. A replica's marker is its master's: it is left alone, and has
--            the age 0.
--
-- Numbers below 2^53 are exact in Lua: microseconds since 1970 are until the year 2255.
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

-- Returns whether the memory is that of the replication id that the caller knows.
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
  -- A clock that is stepped back by 10 ms is noticed as a clock that moved.
  if f and r == run and f <= now and l <= now + 10000 and l >= known and
    (f > known or f == known_first and has_known_id()) then
    first, last = f, l
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
return refusal or string.format('%.0f %.0f %.0f %s %s', now, now - first, last, role, id)
