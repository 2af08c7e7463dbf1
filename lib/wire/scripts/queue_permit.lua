-- QUEUE_PERMIT takes a permit for a waiter, like PERMIT, if the permit is free and there are enough
-- free permits for the waiters ahead as well. Otherwise it enters the waiter in the semaphore's
-- queue, and notifies the waiters ahead of free permits. Repeated with the same value, QUEUE_PERMIT
-- only extends the expiry of a permit that the waiter has by now. Without a channel the waiter gets
-- no queue entry. A waiter whose TTL is 0 only enters the queue, as in QUEUE: it gives back a permit
-- that is reserved for it, and learns which ones it may take.
--
-- keys:      key
-- arguments: channel; value, ttl_ms, reservation_ms, is_fenced, counter_ttl_ms, ticket, permits
-- answer:    y for each key, y<n> if fenced; otherwise h<ms until the permit expires>, p, t or c,
--            then f<map> of the permits that the waiter may take; after h<ms>f<map> also q<waiters
--            ahead> with an entry, or x if the caller has no right to the queue; with a '+' where
--            PASS must go on; h0 for a waiter whose TTL is 0 if no other one has the permit
--@needs items counters queue permits

-- Enters the waiter in the queue, unless it is there, and if the caller has all the rights: also to
-- read the queue and to leave it. A waiter that gives back takes the place of its ticket again.
-- Returns the part of an h answer about the entry, 'q<n>', 'x' or '', and whether a permit is
-- reserved for the waiter.
local function enter(queue, entry, value, ticket, gives_back)
  if my_channel == '' then return '', false end
  local err = refusal_of(queue) or redis.pcall('zrange', queue, 0, 0, 'withscores').err
  local added = not err and redis.pcall('zadd', queue, 'nx', ticket, entry)
  err = err or type(added) == 'table' and added.err
  if err then return lacks_right(err) and 'x' or '', false end
  redis.call('pexpire', queue, '@QUEUE_LIFE@')
  if added == 1 then
    leave_queue(queue, value, ticket, entry)
  else
    local waits = false
    for _, equal in ipairs(redis.pcall('zrange', queue, ticket, ticket, 'byscore')) do
      waits = waits or equal == entry
    end
    if not waits and not gives_back then return 'q0', true end
    if not waits then redis.pcall('zadd', queue, ticket, entry) end
  end
  local ahead = redis.pcall('zcount', queue, '-inf', '(' .. ticket)
  return 'q' .. text(type(ahead) == 'number' and listening(queue, ahead) or 0), false
end

for i, key in ipairs(KEYS) do
  local token, ttl, reservation, fence, idle, ticket, permits = unpack(ARGV, 7 * i - 5, 7 * i + 1)
  local queue, entry = permit_queue_of(key), entry_of(token, my_channel, reservation, permits)
  local value, fenced = redis.pcall('get', key), fence == '1'
  local only_enters = ttl == '0'
  local is_counted = not fenced or count_of(key .. '@COUNTER_SUFFIX@', @FENCE_RANGE@)
  if is_counted and value == token and not only_enters then
    if tonumber(ttl) > redis.call('pttl', key) then redis.call('pexpire', key, ttl) end
    answer[i] = granted(key, fenced, idle, 0, 0)
  else
    local is_alone = not value and not only_enters and redis.pcall('exists', queue) ~= 1
    local suffix, has_reservation, map = '', false, nil
    if not is_alone then
      front_of(queue)
      suffix, has_reservation = enter(queue, entry, token, ticket, only_enters)
    end
    local mine = string.sub(suffix, 1, 1) == 'q' and entry or nil
    local may = has_reservation or is_alone and is_counted
    if not may then
      map = offer(queue, key, permits, mine)
      may = map
    end
    if may and is_counted and not value and not only_enters then
      redis.call('set', key, token, 'PX', ttl)
      if mine then redis.pcall('zrem', queue, entry) end
      answer[i] = granted(key, fenced, idle, @FENCE_RANGE@, tonumber(ticket))
    else
      if has_reservation then map = select(2, scan(key, permits, 0)) end
      local is_held = value and not (only_enters and value == token)
      local item = not is_counted and 'c' or is_held and not_owned(key, value) or
        (only_enters and 'h0' or 'h1000')
      answer[i] = item .. (map or 'f') .. (string.sub(item, 1, 1) == 'h' and suffix or '')
    end
  end
  answer[i] = answer[i] .. more()
end
return table.concat(answer)
