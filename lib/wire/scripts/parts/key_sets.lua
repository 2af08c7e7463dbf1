-- Passes keys to waiters for several keys. Defines is_key_set, was_given, key_set.
--
-- Such a waiter is in the queue of one key, which another client had, and gets all of its keys or
-- none. If another key is in the way, the waiter moves to that key's queue with its ticket. Keys
-- that are never free at the same time would make it wait for ever: so a release reserves the key
-- for a while for a waiter that has waited long, which is then in both queues. Others wait in the
-- meantime, as they do while the key is open to all clients (parts/grants.lua).
--@needs counters queue

-- For each key that this call granted to a waiter for several keys and must also release: the value
-- that the key had before. The release then finds the key granted.
local given

-- Returns whether this call granted the key when it had the value.
local function was_given(key, value)
  return given and given[key] == value
end

-- Returns whether waiters whose queue entries have this form wait for several keys.
local function is_key_set(form)
  return form == 's' or form == 'g'
end

-- Returns offer, longest_first and unmark, which are created lazily: most calls meet no such
-- waiter.
local function key_set()
  -- Returns the keys of an entry, whose names are encoded as "<length>:<key>" each. Returns none if
  -- the encoding is broken.
  local function keys_in(names)
    local keys, at = {}, 1
    while at <= #names do
      local length, start = string.match(names, '^(%d+):()', at)
      if not length then return {} end
      keys[#keys + 1] = string.sub(names, start, start + length - 1)
      at = start + length
    end
    return keys
  end

  -- Removes the member that opens a key to all clients.
  local function unmark(key)
    local member, score = first_of(key)
    if score == '0' then remove(key, member) end
  end

  -- Returns the ticket of the first waiter for a key, as a number, and its entry; nil for none.
  local function waiter_of(key)
    local members, i = redis.pcall('zrange', queue_of(key), 0, 2, 'withscores'), 1
    while members[i + 1] == '0' do i = i + 2 end
    return tonumber(members[i + 1]), members[i]
  end

  -- Returns whether a waiter is the first for a key, or would be if it queued there.
  local function is_first(key, entry, ticket)
    local before, other = waiter_of(key)
    if not before or before > tonumber(ticket) then return true end
    return before == tonumber(ticket) and other >= entry
  end

  -- Returns the order in which a call must pass its keys on, as indexes: of the keys of one lock,
  -- the key whose first waiter has waited longest comes first, because that waiter may wait for
  -- several of these keys. Every `step`th argument is a value; equal values mean one lock.
  local function longest_first(step)
    local order, tickets = {}, {}
    local function value_of(i) return ARGV[step * (i - 1) + 1] end
    for i, key in ipairs(KEYS) do
      local value, at, ticket = value_of(i), i, nil
      if value == value_of(i - 1) or value == value_of(i + 1) then ticket = waiter_of(key) end
      tickets[i] = ticket or math.huge
      while at > 1 and value_of(order[at - 1]) == value and tickets[order[at - 1]] > tickets[i] do
        order[at] = order[at - 1]
        at = at - 1
      end
      order[at] = i
    end
    return order
  end

  -- Returns the first of a waiter's keys that is in the way; nil if none is; or nil and true if the
  -- caller has no right to look. A key other than `key` is in the way if it is neither free nor
  -- being released with `key`, or if another waiter is ahead in its queue.
  local function obstacle(keys, key, caller, entry, ticket)
    for _, other in ipairs(keys) do
      local value = other ~= key and redis.pcall('get', other)
      local is_released = value == caller and #caller >= 40
      if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
        return nil, true
      end
      if value and not is_released or other ~= key and not is_first(other, entry, ticket) then
        return other
      end
    end
  end

  -- Returns the number that the counters of all keys must get: 0 if not fenced, false if a counter
  -- is out of range, nil if the caller may not read one.
  local function number_of(keys, form, ticket)
    local count = form == 'g' and raised(0, ticket) or 0
    for _, key in ipairs(form == 'g' and keys or {}) do
      local counted = count_of(key .. '@COUNTER_SUFFIX@', @FENCE_RANGE@, true)
      if not counted then return counted end
      count = math.max(count, counted)
    end
    return count
  end

  -- Undoes set_all, except for `key`.
  local function unset(keys, key, caller, reservation, released)
    for i, other in ipairs(keys) do
      if released[i] then
        redis.call('set', other, caller, 'PX', reservation)
      elseif other ~= key and released[i] ~= nil then
        redis.call('del', other)
      end
    end
  end

  -- Sets all keys to a value, to expire at `till`. Returns for each whether it had the value
  -- `caller`; undoes everything and returns nil if the server refuses one.
  local function set_all(keys, key, caller, value, reservation, till)
    local released = {}
    for i, other in ipairs(keys) do
      local had = other ~= key and redis.call('get', other) == caller
      local set = redis.pcall('set', other, value, 'PXAT', string.format('%.0f', till))
      if set.err then return unset(keys, key, caller, reservation, released) end
      released[i] = had
    end
    return released
  end

  -- Moves a waiter from the queue of a key to that of the key that is in its way. If a value is
  -- being released and the waiter has waited long, also reserves the key for the waiter: for 1/32
  -- of the time waited, at most one reservation. Returns that time in ms; 'next' if the key goes to
  -- the next waiter; or false if the caller has no right to move the waiter.
  local function move(key, caller, entry, ticket, to, reservation, clock)
    local queue = queue_of(to)
    if type(redis.pcall('zadd', queue, ticket, entry)) ~= 'number' then return false end
    redis.call('pexpire', queue, '@QUEUE_LIFE@')
    relist(to)
    local ms = math.min(tonumber(reservation), math.floor((clock - ticket) / 32000))
    if #caller >= 40 and ms >= 1 and announce(key, clock, ms) then
      redis.pcall('zadd', queue_of(key), 0, string.format('open %.0f', clock / 1000 + ms))
      return ms
    end
    return remove(key, entry) and 'next'
  end

  -- Offers a key that is free, or was the caller's, to its first waiter, which waits for several
  -- keys: grants and pushes all of its keys, or moves it. Returns true if it has the keys now;
  -- otherwise what move() returns.
  local function offer(key, caller, entry, ticket, clock)
    local value, channel, reservation, form, idle, names = parts_of(entry)
    if is_deaf(channel) then return remove(key, entry) and 'next' end
    local keys = keys_in(names)
    local count = number_of(keys, form, ticket)
    if count == nil then return false end
    if not count then
      ask_again(key, value, channel, clock)
      return remove(key, entry) and 'next'
    end
    local other, is_forbidden = obstacle(keys, key, caller, entry, ticket)
    if is_forbidden then return false end
    if other then return move(key, caller, entry, ticket, other, reservation, clock) end
    local till = math.floor(clock / 1000) + reservation
    local released = set_all(keys, key, caller, value, reservation, till)
    if not released then return false end
    for _, each in ipairs(count > 0 and keys or {}) do
      raise(each .. '@COUNTER_SUFFIX@', count, idle)
    end
    local heard = push(key, value, channel, till, clock, count, names)
    if (heard or 0) == 0 then
      unset(keys, key, caller, reservation, released)
      return heard and remove(key, entry) and 'next'
    end
    for i, each in ipairs(keys) do
      unmark(each)
      remove(each, entry)
      if released[i] then
        given = given or {}
        given[each] = caller
      end
    end
    return true
  end
  return offer, longest_first, unmark
end
