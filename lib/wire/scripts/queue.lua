-- QUEUE takes each key for a waiter, if the key is free and nobody stands in line before the
-- waiter. Otherwise it gives the waiter an entry in the key's queue, and the key, if free, to the
-- first in line. Asked again under the same value, QUEUE changes nothing but an earlier expiry of a
-- key that the waiter has by now. Without a channel no entry is given; a writer that meets readers
-- then leaves its intent, as WRITE does.
--
-- Behind that, QUEUE gives back the keys of items whose form is '-': as LEAVE, with the ticket, or,
-- with the ticket 0, as RELEASE. The waiter of a client that releases a key stands in line by then.
--
-- keys:      key
-- arguments: for all: the channel or ''; then value, TTL in ms, reservation in ms, form of the
--            entry, TTL of the counter in ms or 0, ticket
-- answer:    y, h<ms>, p, t or c for each key; y<n> if fenced; h<ms>q<waiters ahead> with an entry,
--            h<ms>q0w to the first in line where the holder is of another make, h<ms>x where the
--            caller has no right to the queue; with a '+' where PASS is to go on
--@needs items counters queue releases

-- Tells whether waiters whose entries are of a form are writers.
local function is_writer(form)
  return form == 'w' or form == 'x'
end

-- Leaves an intent for readers that hold the key, on behalf of a writer without an entry, whose
-- next try comes within a reservation. An entry makes the writer's intent needless.
local function set_intent(key, value, token, claim, has_entry)
  local name = key .. '@WRITER_SUFFIX@'
  if has_entry and redis.pcall('get', name) == token then redis.pcall('del', name) end
  if has_entry or value ~= '@REDLOCK_SHARED_VALUE@' then return end
  local left = redis.pcall('pttl', name)
  if type(left) == 'number' and left < tonumber(claim) then
    redis.pcall('set', name, token, 'PX', claim)
  end
end

-- Takes the key, or an entry. Returns the item.
local function queue(key, token, ttl, claim, form, idle, ticket)
  local entry = table.concat({token, my_channel, claim, form, idle}, ' ')
  local value, fenced = redis.pcall('get', key), is_fenced(form)
  if fenced and not count_of(key .. '@COUNTER_SUFFIX@', 1) then return 'c' end
  if value == token then
    flag()
    if redis.call('pttl', key) < tonumber(ttl) then redis.call('pexpire', key, ttl) end
    return granted(key, fenced, idle, 0, 0)
  end
  local is_alone = not value and redis.pcall('exists', queue_of(key)) ~= 1
  local suffix = is_alone and '' or make_entry(key, token, ticket, entry)
  local others = value or not is_alone and pass(key, '', entry)
  if type(others) == 'number' then return 'h' .. string.format('%.0f', others) .. suffix end
  if others then
    if is_writer(form) then
      set_intent(key, value, token, claim, string.sub(suffix, 1, 1) == 'q')
    end
    return with_entry(not_owned(key, value or ''), suffix, value)
  end
  redis.call('set', key, token, 'PX', ttl)
  if not is_alone then remove(key, entry) end
  if is_writer(form) then redis.pcall('del', key .. '@WRITER_SUFFIX@') end
  return granted(key, fenced, idle, 1, tonumber(ticket))
end

-- Returns the arguments of a key.
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
