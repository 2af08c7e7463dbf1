-- Defines the passing on of keys to waiters for several: is_key_set, was_given,
-- key_set.
--
-- Such a waiter stands in the queue of one key, which somebody else had, and is given all of its
-- keys or none. Where another key is in the way, it moves, with its ticket, to the queue of that
-- one. It would wait without end for keys that are never free at once: so a release keeps the key
-- free for a while for one that has waited long, which then stands in both queues. Others wait
-- meanwhile, as while the key is left to anybody (parts/grants.lua).
--@needs counters queue

-- The values in place of which this call gave keys to waiters for several: of keys that the call
-- is to release as well, and finds given.
local given

-- Tells whether the call gave a key away that had the value.
local function was_given(key, value)
  return given and given[key] == value
end

-- Tells whether waiters whose entries are of a form wait for several keys.
local function is_key_set(form)
  return form == 's' or form == 'f'
end

-- Makes and returns offer, longest_first and unmark. Most calls meet no such waiter, and are spared
-- the making of so many functions.
local function key_set()
  -- Returns the keys of an entry, whose names are "<length>:<key>" for each.
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

  -- Takes away what leaves a key to anybody.
  local function unmark(key)
    local member, score = first_of(key)
    if score == '0' then remove(key, member) end
  end

  -- Returns the ticket of the first waiter in line for a key as a number, and its entry. Returns nil
  -- where there is none.
  local function waiter_of(key)
    local members, i = redis.pcall('zrange', queue_of(key), 0, 2, 'withscores'), 1
    while members[i + 1] == '0' do i = i + 2 end
    return tonumber(members[i + 1]), members[i]
  end

  -- Tells whether a waiter is the first in line for a key, or would be.
  local function is_first(key, entry, ticket)
    local before, other = waiter_of(key)
    if not before or before > tonumber(ticket) then return true end
    return before == tonumber(ticket) and other >= entry
  end

  -- Returns the order in which a call is to pass keys on, as their indexes, where every `step`th
  -- argument is a value: of the keys of one lock that first whose first waiter has waited longest.
  -- It may wait for several of these keys.
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

  -- Returns the first of a waiter's keys that is in the way, and nil; or nil and true where the
  -- caller may not look. Not in the way are `key`, and those that are free, or are being released
  -- with it, unless somebody is before the waiter in line for them.
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

  -- Returns the number that the counters of all keys are to have: 0 if not fenced, false where one
  -- is no counter, or nil where the caller may not read one.
  local function number_of(keys, form, ticket)
    local count = form == 'f' and raised(0, ticket) or 0
    for _, key in ipairs(form == 'f' and keys or {}) do
      local counted = count_of(key .. '@COUNTER_SUFFIX@', 1, true)
      if not counted then return counted end
      count = math.max(count, counted)
    end
    return count
  end

  -- Undoes set_all, but for `key`.
  local function unset(keys, key, caller, claim, released)
    for i, other in ipairs(keys) do
      if released[i] then
        redis.call('set', other, caller, 'PX', claim)
      elseif other ~= key and released[i] ~= nil then
        redis.call('del', other)
      end
    end
  end

  -- Sets all keys to a value, to expire at `till`. Returns for each whether it had the value
  -- `caller`, or nothing where the server refuses one.
  local function set_all(keys, key, caller, value, claim, till)
    local released = {}
    for i, other in ipairs(keys) do
      local had = other ~= key and redis.call('get', other) == caller
      local set = redis.pcall('set', other, value, 'PXAT', string.format('%.0f', till))
      if set.err then return unset(keys, key, caller, claim, released) end
      released[i] = had
    end
    return released
  end

  -- Moves a waiter from the queue of a key to that of the key that is in its way. If a value is
  -- being released, and the waiter has waited long, keeps the key free for the waiter, for 1/32 of
  -- the time that it has waited, a reservation at the most. Returns that time in ms, 'next' for the
  -- next in line, or false where the caller has no right to.
  local function move(key, caller, entry, ticket, to, claim, clock)
    local queue = queue_of(to)
    if type(redis.pcall('zadd', queue, ticket, entry)) ~= 'number' then return false end
    redis.call('pexpire', queue, '@QUEUE_LIFE@')
    local ms = math.min(tonumber(claim), math.floor((clock - ticket) / 32000))
    if #caller >= 40 and ms >= 1 and announce(key, clock, ms) then
      redis.pcall('zadd', queue_of(key), 0, string.format('open %.0f', clock / 1000 + ms))
      return ms
    end
    return remove(key, entry) and 'next'
  end

  -- Offers a key that is free, or was the caller's, to a waiter for several that is the first in
  -- line for it: gives and pushes all of its keys, or moves it. Returns true if it has the keys
  -- now; or as move() does.
  local function offer(key, caller, entry, ticket, clock)
    local value, channel, claim, form, idle, names = parts_of(entry)
    if is_deaf(channel) then return remove(key, entry) and 'next' end
    local keys = keys_in(names)
    local count = number_of(keys, form, ticket)
    if count == nil then return false end
    if not count then return remove(key, entry) and 'next' end
    local other, is_forbidden = obstacle(keys, key, caller, entry, ticket)
    if is_forbidden then return false end
    if other then return move(key, caller, entry, ticket, other, claim, clock) end
    local till = math.floor(clock / 1000) + claim
    local released = set_all(keys, key, caller, value, claim, till)
    if not released then return false end
    for _, each in ipairs(count > 0 and keys or {}) do
      raise(each .. '@COUNTER_SUFFIX@', count, idle)
    end
    local heard = push(key, value, channel, till, clock, count, names)
    if (heard or 0) == 0 then
      unset(keys, key, caller, claim, released)
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
