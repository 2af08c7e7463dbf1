-- QUEUE takes each key for a waiter, if the key is free and no waiter is ahead. Otherwise it enters
-- the waiter in the key's queue, and passes the key, if free, to the first waiter. Repeated with
-- the same value, QUEUE only extends the expiry of a key that the waiter has by now. Without a
-- channel the waiter gets no queue entry; a writer that meets readers then leaves its intent, like
-- WRITE. A waiter whose TTL is 0 only enters the queue: it neither takes a free key, nor passes it
-- on, nor extends its own, because a holder may lack the key here. The answer is h0 for both.
--
-- After that, QUEUE gives back the keys of items whose form is '-': like LEAVE if there is a
-- ticket, like RELEASE if the ticket is 0. So a client's waiter is queued before the client's
-- release of the same key.
--
-- keys:      key
-- arguments: channel; value, ttl_ms, reservation_ms, form, counter_ttl_ms, ticket
-- answer:    y, h<ms>, p, t or c for each key; y<n> if fenced; h<ms>q<waiters ahead> with an entry;
--            h<ms>q0w for the first waiter if a foreign client holds the key; h<ms>x if the caller
--            has no right to the queue; with a '+' where PASS must go on
--@needs items counters queue releases

-- Returns whether queue entries of this form belong to writers.
local function is_writer(form)
  return form == 'w' or form == 'v'
end

-- Leaves the intent of a writer without a queue entry where readers hold the key, for one
-- reservation: its next try comes within that time. A queue entry replaces the intent.
local function set_intent(key, value, token, reservation, has_entry)
  local name = key .. '@WRITER_SUFFIX@'
  if has_entry and redis.pcall('get', name) == token then redis.pcall('del', name) end
  if has_entry or value ~= '@REDLOCK_SHARED_VALUE@' then return end
  local left = redis.pcall('pttl', name)
  if type(left) == 'number' and left < tonumber(reservation) then
    redis.pcall('set', name, token, 'PX', reservation)
  end
end

-- Takes the key or enters the waiter in its queue. Returns the item.
local function queue(key, token, ttl, reservation, form, idle, ticket)
  local entry = table.concat({token, my_channel, reservation, form, idle}, ' ')
  local value, fenced = redis.pcall('get', key), is_fenced(form)
  if fenced and not count_of(key .. '@COUNTER_SUFFIX@', @FENCE_RANGE@) then return 'c' end
  if ttl == '0' and (not value or value == token) then
    return 'h0' .. make_entry(key, token, ticket, entry)
  end
  -- The key was pushed to the waiter before this call: keep it, but never shorten its life.
  if value == token then
    list_queue(key, ticket)
    if redis.call('pttl', key) < tonumber(ttl) then redis.call('pexpire', key, ttl) end
    return granted(key, fenced, idle, 0, 0)
  end
  -- In order: a free key that has a queue goes to its first waiter, which may be the caller.
  local is_alone = not value and redis.pcall('exists', queue_of(key)) ~= 1
  local suffix = is_alone and '' or make_entry(key, token, ticket, entry)
  local others = value or not is_alone and pass(key, '', entry)
  if type(others) == 'number' then return 'h' .. string.format('%.0f', others) .. suffix end
  if others then
    if is_writer(form) then
      set_intent(key, value, token, reservation, string.sub(suffix, 1, 1) == 'q')
    end
    return with_entry(not_owned(key, value or ''), suffix, value)
  end
  redis.call('set', key, token, 'PX', ttl)
  if not is_alone then remove(key, entry) end
  if is_writer(form) then redis.pcall('del', key .. '@WRITER_SUFFIX@') end
  return granted(key, fenced, idle, @FENCE_RANGE@, tonumber(ticket))
end

-- Returns the arguments of the key at an index.
local function arguments(i) return unpack(ARGV, 6 * i - 4, 6 * i + 1) end

local function is_release(i) return ARGV[6 * i - 1] == '-' end

for i, key in ipairs(KEYS) do
  if not is_release(i) then answer[i] = queue(key, arguments(i)) .. more() end
end
for i, key in ipairs(KEYS) do
  if is_release(i) then
    local token, _, _, _, _, ticket = arguments(i)
    if ticket ~= '0' then leave(key, token, ticket) end
    answer[i] = release(key, token) .. more()
  end
end
return table.concat(answer)
