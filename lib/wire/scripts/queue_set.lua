-- QUEUE_SET takes all keys of each lock for a waiter, if all are free and no waiter is ahead at any
-- of them. Otherwise it takes none, enters the waiter only in the queue of the first key that is in
-- the way, and passes free keys to their first waiters. Repeated with the same value, QUEUE_SET
-- only extends the expiry of keys that the waiter has by now. Without a channel the waiter gets no
-- queue entry. Fences count as in TAKE. A waiter whose TTL is 0 only enters a queue, as in QUEUE.
--
-- keys:      all keys of a lock; then all of its counters, if fenced
-- arguments: channel; value, ttl_ms, key_count, reservation_ms, form, counter_ttl_ms, ticket
-- answer:    y, h<ms>, p, t or c for each lock; y<n> if fenced; h<ms>q<waiters ahead> with an
--            entry; h<ms>q0w for the first waiter if a foreign client holds the key; h<ms>x if the
--            caller has no right to the queue; with a '+' where PASS must go on
--@needs items queue grants

local _, _, unmark = key_set()

-- Returns the keys in the encoding of entries and messages (parts/key_sets.lua).
local function names_of(keys)
  local names = {}
  for i, key in ipairs(keys) do names[i] = #key .. ':' .. key end
  return table.concat(names)
end

-- Returns the number of keys that have the value, the first key with another value, and the worst
-- item of those that refuse.
local function scan(keys, token, form)
  local had, first, refusal = 0, nil, nil
  for _, key in ipairs(keys) do
    local value = redis.pcall('get', key)
    if value == token then
      had = had + 1
    elseif value then
      first, refusal = first or key, worse(refusal, not_owned(key, value))
    end
    local counted = not is_fenced(form) or count_of(key .. '@COUNTER_SUFFIX@', @FENCE_RANGE@)
    if not counted then refusal = worse(refusal, 'c') end
  end
  return had, first, refusal
end

-- Enters the waiter in the queue of a key that is free or the waiter's own, and passes the key to
-- another waiter that is ahead. Returns nil if it is the waiter's turn, otherwise the item.
local function enter(key, token, ticket, entry)
  local value = redis.pcall('get', key)
  if not value and redis.pcall('exists', queue_of(key)) ~= 1 then return nil end
  if value == token then return nil end
  local suffix = make_entry(key, token, ticket, entry)
  local others = pass(key, '', entry)
  if others == true then return with_entry(not_owned(key, redis.pcall('get', key)), suffix) end
  if others then return 'h' .. string.format('%.0f', others) .. suffix end
  redis.call('del', key)
  return nil
end

-- Leaves the queues of all keys but one, and passes those that are free to the next waiter.
local function leave_others(keys, token, ticket, but)
  for _, key in ipairs(keys) do
    if key ~= but and leave(key, token, ticket) and redis.pcall('get', key) == false then
      unmark(key)
      if pass(key, '') ~= true then redis.call('del', key) end
    end
  end
end

-- Sets all keys, or extends their expiry, and advances their counters by `step`. Returns the item.
local function take(keys, token, ttl, form, idle, step, least)
  local count = is_fenced(form) and raised(0, least) or 0
  for _, key in ipairs(keys) do
    local left = redis.call('pttl', key)
    if left == -2 then
      redis.call('set', key, token, 'PX', ttl)
    elseif left < tonumber(ttl) then
      redis.call('pexpire', key, ttl)
    end
    count = is_fenced(form) and math.max(count, count_of(key .. '@COUNTER_SUFFIX@', step)) or count
  end
  if not is_fenced(form) then return 'y' end
  for _, key in ipairs(keys) do raise(key .. '@COUNTER_SUFFIX@', count, idle) end
  return grant(count)
end

-- Takes all keys, none of which another client has, or queues for one of them. Returns the item.
local function queue(keys, token, ttl, form, idle, ticket, entry)
  for _, key in ipairs(keys) do
    local item = enter(key, token, ticket, entry)
    if item then
      leave_others(keys, token, ticket, key)
      return item
    end
  end
  for _, key in ipairs(keys) do
    unmark(key)
    leave(key, token, ticket)
  end
  return take(keys, token, ttl, form, idle, @FENCE_RANGE@, tonumber(ticket))
end

local k, a = 1, 2
while k <= #KEYS do
  local token, ttl, n, reservation, form, idle, ticket = unpack(ARGV, a, a + 6)
  local keys = {unpack(KEYS, k, k + n - 1)}
  local entry = table.concat({token, my_channel, reservation, form, idle, names_of(keys)}, ' ')
  local had, first, refusal = scan(keys, token, form)
  local item
  if ttl == '0' and not refusal then
    item = 'h0' .. make_entry(keys[1], token, ticket, entry)
    leave_others(keys, token, ticket, keys[1])
  elseif had == #keys and not refusal then
    for _, key in ipairs(keys) do list_queue(key, ticket) end
    item = take(keys, token, ttl, form, idle, 0, 0)
  elseif refusal then
    local is_held = first and string.sub(refusal, 1, 1) == 'h'
    local suffix = is_held and make_entry(first, token, ticket, entry) or ''
    item = with_entry(refusal, suffix, first and redis.pcall('get', first))
    leave_others(keys, token, ticket, is_held and first)
  else
    item = queue(keys, token, ttl, form, idle, ticket, entry)
  end
  answer[#answer + 1] = item .. more()
  k, a = k + n * (is_fenced(form) and 2 or 1), a + 7
end
return table.concat(answer)
