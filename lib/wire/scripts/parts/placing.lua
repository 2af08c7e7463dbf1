-- Defines the taking of places: place, with_place; and what parts/flag.lua and parts/refusal.lua
-- define.
--@needs queue places flag refusal

-- Notes that the first in line asks again, as it may have been told to (announce).
local function has_asked(key, token)
  local _, _, told = first_of(key)
  if told and string.match(told, '^told %d+ (%S+)$') == token then remove(key, told) end
end

-- Gives the waiter a place, if the caller has the rights for that: also those to look at the queue
-- and to leave it. Returns what an answer of h says of the place: those of smaller tickets are ahead,
-- but not "open <ms>", and not a token of the waiter's own that it is about to give up.
local function place(key, token, ticket, entry)
  local queue = queue_of(key)
  if channel == '' then return '' end
  local err = refusal_of(queue)
  local before = not err and redis.pcall('zrange', queue, ticket, ticket, 'byscore')
  err = err or before.err
  local added = not err and redis.pcall('zadd', queue, ticket, entry)
  err = err or type(added) == 'table' and added.err
  if err then return is_forbidden(err) and 'x' or '' end
  redis.call('pexpire', queue, '@QUEUE_LIFE@')
  flag()
  drop(key, token, before, entry)
  local ahead = redis.pcall('zcount', queue, 1, '(' .. ticket)
  if ahead == 0 then has_asked(key, token) end
  return 'q' .. string.format('%.0f', type(ahead) == 'number' and ahead or 0)
end

-- Returns the 'w' of the first in line, whom nobody will tell that the key comes free: the value is
-- neither a token of ours nor that of a share.
local function watched(value, behind)
  local hex = type(value) == 'string' and string.match(value, '^[0-9a-f]*')
  local is_ours = hex and #hex >= 40 or value == '@REDLOCK_SHARED_VALUE@'
  return behind == 'q0' and value and not is_ours and 'w' or ''
end

-- Returns the item of a key that is another's, with what place() says of the waiter's place; of a
-- value that is not ours (nil: not known) also that the key is to be watched.
local function with_place(item, behind, value)
  if string.sub(item, 1, 1) ~= 'h' then return item end
  return item .. behind .. watched(value, behind)
end
