-- Passes keys to waiters. Defines write_ms, pass.
--
-- Clients that do not queue would never find a key free whose queue is never empty. So 1 release in
-- 128, the same one at all servers, opens the key to all clients for a while. The first member of
-- the queue is then "open <ms>", with the end of that time by the server's clock.
--@needs counters readers queue key_sets

-- Opens the key to all clients for a while, if there is a waiter and the caller's value says so.
local function open(key, caller, clock)
  -- The last two digits of the token decide, 2 of 256 values: so all servers decide alike.
  if (tonumber(string.sub(caller, 39, 40), 16) or 255) > 1 then return end
  local entry, ticket = first_of(key)
  if not parts_of(entry or '') then return end
  local ms = opening(queue_of(key), clock - ticket)
  if announce(key, clock, ms) then
    redis.pcall('zadd', queue_of(key), 0, string.format('open %.0f', clock / 1000 + ms))
  end
end

-- Returns admit and dismiss, which are created lazily, because most calls need neither.
local function reader_ops()
  -- Makes a key live until `till`, by the server's clock, or longer. Returns false if the caller
  -- has no right to do this.
  local function keep_until(key, till, instant)
    local left = redis.pcall('pttl', key)
    if type(left) ~= 'number' then return false end
    return left >= till - instant or redis.pcall('pexpireat', key, text(till)) == 1
  end

  -- Lists a reader until `till`. If not `shared`, the key may hold anything. Returns 1; false if
  -- the reader is listed already, because its client has topped the share up; or nil if the server
  -- refuses, or the caller has no right.
  local function admit(key, reader, till, instant, shared)
    local readers, at = key .. '@READERS_SUFFIX@', text(till)
    if not shared then
      local set = redis.pcall('set', key, '@REDLOCK_SHARED_VALUE@', 'PXAT', at)
      if set.err or type(redis.pcall('del', readers)) ~= 'number' then return nil end
    elseif (tonumber(redis.pcall('zscore', readers, reader)) or 0) >= instant then
      return false
    end
    local added = redis.pcall('zadd', readers, at, reader)
    if type(added) ~= 'number' then return nil end
    if keep_until(key, till, instant) and keep_until(readers, till, instant) then return 1 end
    redis.pcall('zrem', readers, reader)
    return nil
  end

  -- Removes an admitted reader from the list. The key then expires with the last of the others.
  local function dismiss(key, reader, instant)
    local readers = key .. '@READERS_SUFFIX@'
    redis.pcall('zrem', readers, reader)
    local last = redis.pcall('zrange', readers, -1, -1, 'withscores')[2]
    for _, name in ipairs(last and {key, readers} or {}) do
      redis.pcall('pexpireat', name, text(math.max(last, instant + 1)))
    end
  end
  return admit, dismiss
end

-- Grants the key, which may hold anything, to one waiter alone until `till`, and advances its
-- counter. Returns the counter, 0 if not fenced; false if the counter is out of range; nil if the
-- server refuses, or the caller has no right.
local function give(key, value, till, form, idle, ticket)
  local counter = key .. '@COUNTER_SUFFIX@'
  local count = not is_fenced(form) and 0 or count_of(counter, @FENCE_RANGE@, true)
  if not count then return count end
  local set = redis.pcall('set', key, value, 'PXAT', digits(till))
  if set.err then return nil end
  if is_fenced(form) then
    count = raised(count, ticket)
    raise(counter, count, idle)
  end
  return count
end

-- Returns the ms for which a writer's intent keeps readers out; a number below 0: there is none.
local function write_ms(key)
  local left = redis.pcall('pttl', key .. '@WRITER_SUFFIX@')
  return type(left) == 'number' and left or -1
end

-- Removes the waiter from the queue of the key, which may hold anything, and grants it the key.
-- Returns whether it has the key now, or 'refused' if the server refuses, or the caller has no
-- right.
local function serve(key, entry, ticket, clock, shared)
  if not remove(key, entry) then return 'refused' end
  local value, channel, reservation, form, idle = parts_of(entry)
  if not value or is_deaf(channel) then return false end
  local instant = math.floor(clock / 1000)
  local till = instant + reservation
  local count, dismiss
  if form == 'r' then
    local admit
    admit, dismiss = reader_ops()
    count = admit(key, value, till, instant, shared)
  else
    count = give(key, value, till, form, idle, ticket)
    if count == false then ask_again(key, value, channel, clock) end
  end
  local heard = count and push(key, value, channel, till, clock, count)
  -- A share that its reader did not hear of would block writers until it expires.
  if dismiss and count and (heard or 0) == 0 then dismiss(key, value, instant) end
  -- The call was refused something: the waiter keeps its position for a caller that may grant.
  if count == nil or count and not heard then
    redis.pcall('zadd', queue_of(key), ticket, entry)
    return 'refused'
  end
  return count and heard > 0
end

-- Passes the key, which had the value `caller` or none (''), to the first waiter whose client
-- listens, unless the entry `mine` comes first, and pushes the grant to the waiter's channel: the
-- key's expiry in ms, and as the number the fence, 1 for a share, or 0. After a reader the readers
-- next in the queue are admitted too; where readers hold the key, only readers are admitted. A
-- waiter whose client does not listen loses its entry, and so does the caller.
--
-- Returns true if waiters or readers have the key now; false if there is no waiter, or `mine` is
-- the first; or else the ms for which the key is open to all clients, left to the writer of an
-- intent, or reserved for a waiter, or after which the rest of the queue may have been handled
-- (may_handle). If the result is not true, the key may hold anything, and the caller deletes it.
--
-- The first write removes the waiter from the queue: so a caller without the right to do this has
-- changed nothing, and a server that is out of memory refuses none of the later writes. If the
-- caller may not publish, the waiter's entry is put back.
local function pass(key, caller, mine)
  local seconds, micros = unpack(redis.call('time'))
  local clock = seconds * 1000000 + micros
  local instant = math.floor(clock / 1000)
  local shared = caller == '@REDLOCK_SHARED_VALUE@'
  if shared and not is_shared(key, caller, key .. '@READERS_SUFFIX@', instant) then return true end
  open(key, caller, clock)
  while true do
    local entry, ticket = first_of(key)
    if not entry or entry == mine then return shared end
    local left = open_ms(entry, instant)
    if left > 0 then return left end
    local value, _, _, form = parts_of(entry)
    local is_reader = form == 'r'
    -- A writer at the head of the queue keeps later readers out: the order of the queue holds.
    if shared and value and not is_reader then return true end
    if not may_handle() then return shared or 1 end
    -- The caller's own entry, which it made while the key was reserved for it: it gives up both.
    if value == caller then return remove(key, entry) and pass(key, caller, mine) end
    if is_key_set(form) then
      if not remove(key, '') then return shared end
      local outcome = key_set()(key, caller, entry, ticket, clock)
      if outcome == 'next' then return pass(key, caller, mine) end
      return outcome
    end
    -- An intent makes room for its writer, which has no queue entry: readers wait until it expires.
    left = is_reader and write_ms(key) or -1
    if left >= 0 then
      if not shared then redis.call('del', key) end
      return left
    end
    local has_it = serve(key, entry, ticket, clock, shared)
    if has_it == 'refused' then return shared end
    if has_it and not is_reader then return true end
    shared = shared or has_it
  end
end
