-- Wait queues: their entries, and notifications to waiters. Defines may_handle, more, queue_of,
-- parts_of, open_ms, opening, remove, first_of, digits, is_deaf, push, ask_again, announce;
-- list_queue, relist; leave; my_channel, lacks_right, refusal_of, listening, make_entry, with_entry.
--
-- The sorted set "<key>@QUEUE_SUFFIX@" has one member for each waiter, its entry: "<value>
-- <channel> <reservation> <form> <idle>", with its ticket as the score.
--   * The channel is the one to which the waiter's client subscribes at this server.
--   * The reservation is the time in ms for which a pushed key is kept.
--   * The form is 0 for a lock, n for a fenced lock, r for a reader, w for a writer, v for a fenced
--     writer, s for a lock of several keys, g for a fenced lock of several keys. (1, x and f were
--     those of clients before ranges of fences. Neither kind grants the other's fenced entries,
--     because it would not reserve the numbers that the other one uses.)
--   * <idle> is the TTL of the counter in ms, or 0. Entries for several keys go on with a blank and
--     their names (parts/key_sets.lua).
--   * The ticket is also the minimum for the fence.
-- Entries begin with the value, so that all servers have waiters with equal tickets in one order.
-- The flag @WAITING_KEY@ is set while any key may have a queue, and the sorted set @QUEUES_KEY@
-- lists these keys: so RELEASE finds out by one command whether any of its keys has a queue, or by
-- none if nobody waits.
--
-- A member with the score 0 is not an entry: "open <ms>" (parts/grants.lua), or "told <ms>
-- <value>", the time until which the first waiter should ask again (announce).

-- A server does nothing else while a call runs. So a call handles a bounded number of entries, over
-- all of its keys. A call that stops there appends '+' to the item of the key, and the client goes
-- on with PASS; if it does not, the next poll does.
local handled, has_stopped = 0, false

-- Counts an entry that the call is about to handle. Returns false at the bound on entries.
local function may_handle()
  handled = handled + 1
  has_stopped = has_stopped or handled > @ENTRIES_MAX@
  return not has_stopped
end

-- Returns the suffix of a key's item: '+' if its queue is not finished, otherwise ''.
local function more()
  local said = has_stopped and '+' or ''
  has_stopped = false
  return said
end

local function queue_of(key)
  return key .. '@QUEUE_SUFFIX@'
end

-- Returns the parts of an entry: value, channel, reservation, form, idle, names; nil if it is not
-- an entry of ours. A reservation has at most 5 digits, so that even a forged entry cannot keep a
-- key for long.
local function parts_of(entry)
  return string.match(entry, '^(%S+) (%S+) (%d%d?%d?%d?%d?) ([0nrwvsg]) (%d+) ?(.*)$')
end

-- Returns the ms for which a member keeps the key open to all clients (parts/grants.lua), 0 if that
-- is longer than allowed; a number below 0 for an entry. Times are rounded, up to 1 ms longer.
local function open_ms(member, instant)
  local left = (tonumber(string.match(member, '^open (%d+)$')) or 0) - instant
  return left <= @OPEN_MAX@ + 1 and left or 0
end

-- Returns the ms for which 1 release in 128 opens a queue to all clients: 1/32 of the time in us
-- that the first waiter has waited, 1 to 100. With n waiters, the first has waited for about n
-- releases, so the queue is open for n/4096 of the time. Beyond 256 waiters it is 256/n of that,
-- about 1/16 of the time: a client that tries 5 times a second then waits about as long as one that
-- queues.
local function opening(queue, waited)
  local waiters = redis.pcall('zcount', queue, 1, '+inf')
  local part = math.min(1, 256 / math.max(1, tonumber(waiters) or 1))
  return math.max(1, math.floor(math.min(100, waited / 32000) * part))
end

-- Removes a member. Returns false if the caller has no right to do this.
local function remove(key, member)
  return type(redis.pcall('zrem', queue_of(key), member)) == 'number'
end

-- Returns the first member of the key's queue other than "told ...", its score, and the "told ..."
-- member if there is one; nil if the queue is empty, or the caller has no right to it.
local function first_of(key)
  local first = redis.pcall('zrange', queue_of(key), 0, 1, 'withscores')
  if first[2] ~= '0' or string.sub(first[1], 1, 5) ~= 'told ' then return first[1], first[2] end
  if #first == 2 then remove(key, first[1]) end
  return first[3], first[4], first[1]
end

-- Returns a time in ms as digits, in parts that fit into 32 bits: '%.0f' takes four times as long.
local function digits(ms)
  return string.format('%d%03d', ms / 1000, ms % 1000)
end

-- Returns whether nobody has subscribed to the channel by its name. PUBLISH also counts pattern
-- subscribers, with one of which every waiter would seem to listen. Returns false if the caller has
-- no right to PUBSUB: then PUBLISH must do.
local function is_deaf(channel)
  return redis.pcall('pubsub', 'numsub', channel)[2] == 0
end

-- Sends a waiter "<expiry> <clock in us> <number> <token> <key>", or "<token>+<names>" if there are
-- names. Returns the number of receivers, or false if the caller has no right to publish.
local function push(key, value, channel, expiry, clock, number, names)
  local token = string.sub(value, 1, 40)
  local stamp = string.format('%d%06d', clock / 1000000, clock % 1000000)
  local count = number == 0 and '0' or string.format('%.0f', number)
  local message = digits(expiry) .. ' ' .. stamp .. ' ' .. count .. ' ' .. token
  local heard = redis.pcall('publish', channel, message .. (names and '+' .. names or ' ' .. key))
  return type(heard) == 'number' and heard
end

-- Returns whether the first waiter was notified to ask again, and has not done so for `ms`: its
-- process hangs. Otherwise records the time of this notification, replacing `record`: also when
-- `record` is further ahead than a new one would be, because the clock was set back.
local function is_overdue(key, record, value, ms, clock)
  local till, who = string.match(record or '', '^told (%d+) (%S+)$')
  local most = clock / 1000 + ms
  if who == value and tonumber(till) <= most + 1 then return tonumber(till) <= clock / 1000 end
  if record then remove(key, record) end
  local due = string.format('told %.0f %s', most, value)
  redis.pcall('zadd', queue_of(key), 0, due)
  return false
end

-- Has a waiter that cannot get the key, because the counter is out of range, ask again now: the
-- answer says why. It is notified as in announce.
local function ask_again(key, value, channel, clock)
  push(key, value, channel, 0, clock, 0)
end

-- Notifies the first waiter to ask again after some ms, by a message with an expiry of 0 and the
-- time as the number. Returns whether a waiter was notified; false while the key is open to all
-- clients. Waiters whose clients do not listen, or do not ask again, lose their entries. At the
-- call's bound on entries a waiter that listens may still be in the queue: returns true then.
local function announce(key, clock, ms)
  -- A client asks within 17/16 of a reservation after a notification (core/queue.c). If one hangs
  -- (its record is due), others on its host may hang too, so the next has less time. If it lives
  -- and lost its entry too early, its next poll restores the entry with the old ticket.
  local entry, _, record = first_of(key)
  local till = tonumber(string.match(record or '', '^told (%d+)'))
  local silent = till and till <= clock / 1000 and 1 / 4 or @SILENT_RESERVATIONS@
  while entry and open_ms(entry, clock / 1000) <= 0 do
    if not may_handle() then return true end
    local value, channel, reservation = parts_of(entry)
    local heard = 0
    -- The dead leave the record alone: it may be that of the first waiter after them.
    if value and not is_deaf(channel) then
      if is_overdue(key, record, value, silent * reservation, clock) then
        silent = 1 / 4
      else
        heard = push(key, value, channel, 0, clock, ms)
      end
    end
    if heard ~= 0 then return heard and true end
    if not remove(key, entry) then return false end
    entry, _, record = first_of(key)
  end
  return false
end

-- Completes the list after a key was added: encoding, expiry, and length.
local function tend_list(key, ticket)
  -- After a member of more than 64 bytes the server keeps the set as a hash table: as a short list,
  -- ZREM would compare each of its keys with all members.
  local long = string.rep(' ', 65)
  redis.pcall('zadd', '@QUEUES_KEY@', ticket, long)
  redis.pcall('zrem', '@QUEUES_KEY@', long)
  redis.pcall('pexpire', '@QUEUES_KEY@', '@QUEUE_LIFE@')
  -- A key whose waiters died may never be released. So each new key removes the oldest one if it
  -- has no queue any more.
  local oldest = redis.pcall('zrange', '@QUEUES_KEY@', 0, 0)[1] or key
  if oldest == key then return end
  if redis.pcall('exists', queue_of(oldest)) == 1 then
    redis.pcall('zadd', '@QUEUES_KEY@', ticket, oldest)
  else
    redis.pcall('zrem', '@QUEUES_KEY@', oldest)
  end
end

-- The channel of the caller's client, or '': the first argument of all scripts that queue.
local my_channel = ARGV[1]

-- Whether this call has set the flag, or found it set for long enough.
local is_flagged = false

-- Lists a key that may have a queue, and sets the flag. The ticket is the place in the list. Without
-- a channel does nothing. Returns the server's error, or nil.
local function list_queue(key, ticket)
  if my_channel == '' then return end
  local added = redis.pcall('zadd', '@QUEUES_KEY@', 'nx', ticket, key)
  if type(added) ~= 'number' then return added.err end
  if added == 1 then tend_list(key, ticket) end
  local left = is_flagged or redis.pcall('pttl', '@WAITING_KEY@')
  if type(left) == 'number' and left < @QUEUE_LIFE@ / 2 then
    redis.pcall('set', '@WAITING_KEY@', '1', 'PX', '@QUEUE_LIFE@')
    redis.pcall('pexpire', '@QUEUES_KEY@', '@QUEUE_LIFE@')
  end
  is_flagged = true
end

-- Lists a key again that has been removed from the list, or to whose queue a waiter moves.
local function relist(key)
  redis.pcall('zadd', '@QUEUES_KEY@', 'nx', 0, key)
  redis.pcall('pexpire', '@QUEUES_KEY@', '@QUEUE_LIFE@')
end

-- Removes those of `entries` that belong to the waiter from the key's queue, except the entry
-- `but`: after a reconnect a waiter has a new channel, and so another entry. Returns whether there
-- was one.
local function cut_entries(key, value, entries, but)
  local removed
  for _, entry in ipairs(entries) do
    local is_mine = string.sub(entry, 1, #value + 1) == value .. ' '
    if is_mine and entry ~= but then removed = remove(key, entry) end
  end
  return removed
end

-- Removes the entries of a waiter from the key's queue; with the last entry also the members that
-- are not entries. Returns whether there was an entry.
local function leave(key, value, ticket)
  local queue = queue_of(key)
  local removed = cut_entries(key, value, redis.pcall('zrange', queue, ticket, ticket, 'byscore'))
  local rest = removed and redis.pcall('zrange', queue, 0, 2, 'withscores') or {}
  for i = 1, rest[#rest] == '0' and #rest or 0, 2 do remove(key, rest[i]) end
  return removed
end

-- Returns whether an error reports a missing right: as in Redis 7.0, or as in later versions.
local function lacks_right(err)
  return string.find(err, "executing the script can't", 1, true) or
    string.find(err, 'ACL failure', 1, true)
end

-- Tests the commands that change a queue, without a change. Returns the server's error, or nil: for
-- a missing right, or for lack of memory, which a server reports only at the first command.
local function refusal_of(queue)
  local reply = redis.pcall('zadd', queue, 'xx', 0, '')
  if type(reply) == 'number' then reply = redis.pcall('zrem', queue, '') end
  return type(reply) == 'table' and reply.err or nil
end

-- Records that the first waiter has asked again, as it may have been notified to (announce).
local function has_asked(key, token)
  local _, _, record = first_of(key)
  if record and string.match(record, '^told %d+ (%S+)$') == token then remove(key, record) end
end

-- Returns the number of waiters ahead that listen, given the number of entries ahead: all of 16, and
-- of more the share that listens of the 2 nearest. The dead stay in the queue until they are first:
-- if they counted, the only waiter that lives would ask as rarely as the last of a crowd.
local function listening(queue, ahead)
  if ahead <= 16 then return ahead end
  local near = redis.pcall('zrange', queue, ahead - 2, ahead - 1)
  local _, one = parts_of(near[1])
  local _, other = parts_of(near[2])
  local counts = redis.pcall('pubsub', 'numsub', one or '', other or '')
  if counts.err then return ahead end
  return math.floor(ahead * (math.min(counts[2], 1) + math.min(counts[4], 1)) / 2)
end

-- Returns how many of the waiters ahead are readers, by the share of the 16 nearest, but at least 1.
-- A reader waits for the others, but nobody notifies it if they die while readers hold the key: so
-- the first reader asks as often as if one waiter were ahead, however many there are.
local function readers_of(queue, ahead, waiters)
  local near, readers = redis.pcall('zrange', queue, math.max(0, ahead - 16), ahead - 1), 0
  for _, entry in ipairs(near) do
    local _, _, _, form = parts_of(entry)
    if form == 'r' then readers = readers + 1 end
  end
  return math.max(1, math.floor(waiters * readers / math.max(1, #near)))
end

-- Enters the waiter in the queue if the caller has all the rights: also to read the queue and to
-- leave it. Returns the part of an h answer about the entry: 'q' and the number of waiters with
-- smaller tickets that listen (for a reader, of such readers), 'x' without the rights, or ''.
-- "open <ms>" is not counted, nor an entry of the waiter's previous token: it has the same ticket.
local function make_entry(key, token, ticket, entry)
  local queue = queue_of(key)
  if my_channel == '' then return '' end
  -- A queue that is not listed would be skipped by releases: without the right, no entry.
  local err = refusal_of(queue) or list_queue(key, ticket)
  local before = not err and redis.pcall('zrange', queue, ticket, ticket, 'byscore')
  err = err or before.err
  local added = not err and redis.pcall('zadd', queue, ticket, entry)
  err = err or type(added) == 'table' and added.err
  if err then return lacks_right(err) and 'x' or '' end
  redis.call('pexpire', queue, '@QUEUE_LIFE@')
  cut_entries(key, token, before, entry)
  local ahead = redis.pcall('zcount', queue, 1, '(' .. ticket)
  if type(ahead) ~= 'number' then return 'q0' end
  if ahead == 0 then
    has_asked(key, token)
    return 'q0'
  end
  local count = listening(queue, ahead)
  local _, _, _, form = parts_of(entry)
  if form == 'r' then count = readers_of(queue, ahead, count) end
  return 'q' .. string.format('%.0f', count)
end

-- Returns 'w' for the first waiter if nobody will notify it that the key comes free, because a
-- foreign client holds the key: the value is neither a token of ours nor that of a share.
local function watched(value, suffix)
  local hex = type(value) == 'string' and string.match(value, '^[0-9a-f]*')
  local is_ours = hex and #hex >= 40 or value == '@REDLOCK_SHARED_VALUE@'
  return suffix == 'q0' and value and not is_ours and 'w' or ''
end

-- Returns the item of a key that is not the caller's, with what make_entry() returned. If the value
-- (nil: not known) is a foreign client's, adds that the waiter should watch the key.
local function with_entry(item, suffix, value)
  if string.sub(item, 1, 1) ~= 'h' then return item end
  return item .. suffix .. watched(value, suffix)
end
