-- SHARE_QUEUE admits a reader like SHARE, if no waiter is ahead. Otherwise it enters the reader in
-- the key's queue, and passes the key to the waiters ahead that may have it. Repeated with the same
-- value, SHARE_QUEUE only extends the expiry of a share that the reader has by now. Where readers
-- hold the key, it notifies the first waiter to ask again, and removes one whose client does not
-- listen, or did not ask. Without a channel the reader gets no queue entry. A reader whose TTL is 0
-- is not admitted, as in QUEUE.
--
-- keys:      key, readers, writer (the intent)
-- arguments: channel; value, ttl_ms, reservation_ms, form, counter_ttl_ms, ticket
-- answer:    y, h<ms>, p or t for each key; h<ms>q<waiters ahead> with an entry; h<ms>q0w for the
--            first waiter if a foreign client holds the key; h<ms>x if the caller has no right to
--            the queue; if an intent refuses, h<ms> is the intent's TTL; with a '+' where PASS must
--            go on
--@needs items readers queue grants
needs_count = true

-- Returns whether somebody has the key alone by now, or is ahead of the entry `mine` in the queue.
local function is_kept_out(key, readers, mine)
  local first = first_of(key)
  if first and first ~= mine then return true end
  return not is_shared(key, redis.pcall('get', key), readers, now)
end

-- Admits a reader that is not listed, or enters it in the queue, of a key that is free or shared
-- (value). Returns the item.
local function enter(key, value, readers, reader, ttl, ticket, entry)
  if not value and ttl == '0' then return 'h0' .. make_entry(key, reader, ticket, entry) end
  local left = write_ms(key)
  local is_alone = ttl ~= '0' and left < 0 and redis.pcall('exists', queue_of(key)) ~= 1
  if not is_alone then
    local suffix = make_entry(key, reader, ticket, entry)
    if left >= 0 then return 'h' .. text(left) .. suffix end
    -- Also for a reader that is new in the queue: readers may come and go, each of whom asks once,
    -- and a waiter that hangs must not keep them out.
    if value and first_of(key) ~= entry then
      announce(key, time[1] * 1000000 + time[2], redis.call('pttl', key))
    end
    local others = pass(key, value or '', entry)
    if type(others) == 'number' then return 'h' .. text(others) .. suffix end
    if others and is_kept_out(key, readers, entry) then
      return with_entry(not_owned(key, ''), suffix)
    end
    if ttl == '0' then
      if others then expire(key, readers) end
      return 'h0' .. suffix
    end
    remove(key, entry)
    value = others
  end
  list(key, readers, reader, ttl, not value)
  if not is_alone then pass(key, '@REDLOCK_SHARED_VALUE@') end
  return 'y'
end

for i = 1, #KEYS / 3 do
  local key, readers = KEYS[3 * i - 2], KEYS[3 * i - 1]
  local reader, ttl, reservation, form, idle, ticket = unpack(ARGV, 6 * i - 4, 6 * i + 1)
  local entry = table.concat({reader, my_channel, reservation, form, idle}, ' ')
  local value = redis.pcall('get', key)
  -- Fails where the caller could neither keep a share nor give it back.
  readers_in(readers, now)
  if value and not is_shared(key, value, readers, now) then
    local suffix = make_entry(key, reader, ticket, entry)
    answer[i] = with_entry(not_owned(key, value), suffix, value)
  elseif value and listed(readers, reader) > 0 and ttl == '0' then
    expire(key, readers)
    answer[i] = 'h0' .. make_entry(key, reader, ticket, entry)
  elseif value and listed(readers, reader) > 0 then
    list_queue(key, ticket)
    answer[i] = list(key, readers, reader, ttl)
  else
    answer[i] = enter(key, value, readers, reader, ttl, ticket, entry)
  end
  answer[i] = answer[i] .. more()
end
return table.concat(answer)
