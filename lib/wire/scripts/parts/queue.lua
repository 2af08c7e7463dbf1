-- Defines the queues of waiters, what waiters are told, and their entries: may_handle, more,
-- queue_of, parts_of, open_ms, remove, first_of, digits, is_deaf, push, send, announce; leave;
-- my_channel, flag, lacks_right, refusal_of, make_entry, with_entry.
--
-- The sorted set "<key>@QUEUE_SUFFIX@" has a member for each waiter, its entry: "<value> <channel>
-- <reservation> <form> <idle>", with its ticket as the score. The channel is the one that the
-- waiter's client subscribes to at this server; the reservation is the time in ms for which a key
-- that is pushed is kept; the form is 0 for a lock, 1 for a fenced one, r for a reader, w for a
-- writer, x for a fenced writer, s for a lock of several keys, f for a fenced one of several; then
-- the TTL of the counter in ms or 0; of several keys also a blank, and their names
-- (parts/key_sets.lua). The ticket is also the least fence.
-- Values come first, so that all servers have waiters with the same ticket in the same order.
-- The flag @WAITING_KEY@ stands while any key may have a queue, so that who releases need not look.
--
-- A member with the score 0 is no entry: "open <ms>" (parts/grants.lua), or "told <ms> <value>",
-- the time until which the first in line is to ask again (announce).

-- A server does nothing else while a call runs. So a call handles a bounded number of entries, for
-- all of its keys. A call that stops there says so by a '+' behind the item of the key, and the
-- client goes on with PASS; where it does not, the next poll does.
local handled, has_stopped = 0, false

-- Counts an entry that the call is about to handle. Returns false at the bound.
local function may_handle()
  handled = handled + 1
  has_stopped = has_stopped or handled > @ENTRIES_MAX@
  return not has_stopped
end

-- Returns what an item says of a key whose queue the call has not gone through: '+', or ''.
local function more()
  local said = has_stopped and '+' or ''
  has_stopped = false
  return said
end

local function queue_of(key)
  return key .. '@QUEUE_SUFFIX@'
end

-- Returns the parts of an entry: value, channel, reservation, form, idle, names; nil for what is no
-- entry of ours: a reservation has 5 digits at most, so that no entry, however written, keeps a key
-- for long.
local function parts_of(entry)
  return string.match(entry, '^(%S+) (%S+) (%d%d?%d?%d?%d?) ([01rwxsf]) (%d+) ?(.*)$')
end

-- Returns the ms for which a member leaves the key to anybody (parts/grants.lua), 0 if they are too
-- many; for an entry a number below 0. Times are rounded: they may be longer by 1 ms.
local function open_ms(member, instant)
  local left = (tonumber(string.match(member, '^open (%d+)$')) or 0) - instant
  return left <= @OPEN_MAX@ + 1 and left or 0
end

-- Removes a member. Returns false where the caller has no right to.
local function remove(key, member)
  return type(redis.pcall('zrem', queue_of(key), member)) == 'number'
end

-- Returns the first member of the key's queue but for "told ...", its score, and "told ..." if it
-- is there; nil where there is none, or where the caller has no right to the queue.
local function first_of(key)
  local first = redis.pcall('zrange', queue_of(key), 0, 1, 'withscores')
  if first[2] ~= '0' or string.sub(first[1], 1, 5) ~= 'told ' then return first[1], first[2] end
  if #first == 2 then remove(key, first[1]) end
  return first[3], first[4], first[1]
end

-- Returns a time in ms as digits, by parts that fit into 32 bits: '%.0f' takes four times as long.
local function digits(ms)
  return string.format('%d%03d', ms / 1000, ms % 1000)
end

-- Returns whether nobody has subscribed to the channel by its name. PUBLISH also counts those who
-- listen by a pattern, and with one of these every waiter would seem to listen. Returns false where
-- the caller has no right to ask: then PUBLISH has to do.
local function is_deaf(channel)
  return redis.pcall('pubsub', 'numsub', channel)[2] == 0
end

-- Sends a waiter "<expiry> <clock in us> <number> <token> <key>", or "+<names>" for the last part if
-- there are names. Returns how many heard it, or false where the caller has no right to publish.
local function push(key, value, channel, expiry, clock, number, names)
  local token = string.sub(value, 1, 40)
  local stamp = string.format('%d%06d', clock / 1000000, clock % 1000000)
  local count = number == 0 and '0' or string.format('%.0f', number)
  local message = digits(expiry) .. ' ' .. stamp .. ' ' .. count .. ' ' .. token
  local heard = redis.pcall('publish', channel, message .. (names and '+' .. names or ' ' .. key))
  return type(heard) == 'number' and heard
end

-- Sends as push(), with the expiry 0, to a waiter that may not listen: 0 have heard it then.
local function send(key, value, channel, clock, number)
  if is_deaf(channel) then return 0 end
  return push(key, value, channel, 0, clock, number)
end

-- Returns whether the first waiter was notified, and has not asked again for `ms`: its process hangs.
-- Otherwise records, in place of `told`, that it is notified now; also where the record is further
-- ahead than one of now, because the clock was set back.
local function is_overdue(key, told, value, ms, clock)
  local till, who = string.match(told or '', '^told (%d+) (%S+)$')
  local most = clock / 1000 + ms
  if who == value and tonumber(till) <= most + 1 then return tonumber(till) <= clock / 1000 end
  if told then remove(key, told) end
  local due = string.format('told %.0f %s', most, value)
  redis.pcall('zadd', queue_of(key), 0, due)
  return false
end

-- Notifies the first waiter that it is to ask again after some ms: by a message with an expiry of 0,
-- and the time as the number. Returns whether it heard; false while the key is left to anybody.
-- Waiters whose clients do not listen, or do not ask again, lose their entries. At the bound of the
-- call's entries somebody who listens may still be in the queue: that counts as heard.
local function announce(key, clock, ms)
  -- A client that is notified asks within a reservation and a sixteenth (core/queue.c). Where one
  -- hangs, others of its host may hang too: the next has less time. If it lives, its next poll, by the
  -- old ticket, makes good an entry that was removed too early.
  local reservations = @SILENT_RESERVATIONS@
  local entry, _, told = first_of(key)
  while entry and open_ms(entry, clock / 1000) <= 0 do
    if not may_handle() then return true end
    local value, channel, claim = parts_of(entry)
    local heard = 0
    if value and is_overdue(key, told, value, reservations * claim, clock) then
      reservations = 1 / 4
    elseif value then
      heard = send(key, value, channel, clock, ms)
    end
    if heard ~= 0 then return heard and true end
    if not remove(key, entry) then return false end
    entry, _, told = first_of(key)
  end
  return false
end

-- Takes those entries out of the key's queue that are of the waiter, but for the entry `but`: a
-- waiter whose connection is new has a new channel, and with that another entry. Returns whether
-- there was one.
local function cut_entries(key, value, entries, but)
  local removed
  for _, entry in ipairs(entries) do
    local is_mine = string.sub(entry, 1, #value + 1) == value .. ' '
    if is_mine and entry ~= but then removed = remove(key, entry) end
  end
  return removed
end

-- Takes the entries of a waiter out of the key's queue. Members that are no entry go with the last
-- one. Returns whether there was an entry.
local function leave(key, value, ticket)
  local queue = queue_of(key)
  local removed = cut_entries(key, value, redis.pcall('zrange', queue, ticket, ticket, 'byscore'))
  local rest = removed and redis.pcall('zrange', queue, 0, 2, 'withscores') or {}
  for i = 1, rest[#rest] == '0' and #rest or 0, 2 do remove(key, rest[i]) end
  return removed
end

-- The channel of the caller's client, or '': the first argument of scripts that take entries.
local my_channel = ARGV[1]
local flagged = my_channel == ''

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
local function lacks_right(err)
  return string.find(err, "executing the script can't", 1, true) or
    string.find(err, 'ACL failure', 1, true)
end

-- Changes nothing, by commands that change a queue. Returns the server's refusal: for want of a
-- right, or of memory, which a server that is full refuses to the first command alone; or nil.
local function refusal_of(queue)
  local reply = redis.pcall('zadd', queue, 'xx', 0, '')
  if type(reply) == 'number' then reply = redis.pcall('zrem', queue, '') end
  return type(reply) == 'table' and reply.err or nil
end

-- Notes that the first in line asks again, as it may have been told to (announce).
local function has_asked(key, token)
  local _, _, told = first_of(key)
  if told and string.match(told, '^told %d+ (%S+)$') == token then remove(key, told) end
end

-- Gives the waiter an entry, if the caller has the rights for that: also those to look at the queue
-- and to leave it. Returns what an answer of h says of the place: those of smaller tickets are
-- ahead, but not "open <ms>", and not a token of the waiter's own that it is about to give up.
local function make_entry(key, token, ticket, entry)
  local queue = queue_of(key)
  if my_channel == '' then return '' end
  local err = refusal_of(queue)
  local before = not err and redis.pcall('zrange', queue, ticket, ticket, 'byscore')
  err = err or before.err
  local added = not err and redis.pcall('zadd', queue, ticket, entry)
  err = err or type(added) == 'table' and added.err
  if err then return lacks_right(err) and 'x' or '' end
  redis.call('pexpire', queue, '@QUEUE_LIFE@')
  flag()
  cut_entries(key, token, before, entry)
  local ahead = redis.pcall('zcount', queue, 1, '(' .. ticket)
  if ahead == 0 then has_asked(key, token) end
  return 'q' .. string.format('%.0f', type(ahead) == 'number' and ahead or 0)
end

-- Returns the 'w' of the first in line, whom nobody will tell that the key comes free: the value is
-- neither a token of ours nor that of a share.
local function watched(value, suffix)
  local hex = type(value) == 'string' and string.match(value, '^[0-9a-f]*')
  local is_ours = hex and #hex >= 40 or value == '@REDLOCK_SHARED_VALUE@'
  return suffix == 'q0' and value and not is_ours and 'w' or ''
end

-- Returns the item of a key that is another's, with what make_entry() says of the waiter's place;
-- of a value that is not ours (nil: not known) also that the key is to be watched.
local function with_entry(item, suffix, value)
  if string.sub(item, 1, 1) ~= 'h' then return item end
  return item .. suffix .. watched(value, suffix)
end
