-- The queue for the permits of a semaphore. Defines permit_queue_of, entry_of, scan, front_of,
-- offer, pass_on, offer_all, leave_queue.
--
-- The queue is the sorted set "<name>@PERMITS_SUFFIX@", with one entry (parts/queue.lua) for each
-- waiter, whichever permit it asks for. Its <idle> is the number of permits; its <value> identifies
-- the waiter, not one of its tries: the 20 digits with which the tokens of all its tries begin, and
-- zeros.
-- A server does not grant a permit on its own: if two come free at about the same time, different
-- servers would grant different ones to the same waiter. Instead it notifies the waiter of the
-- permit that has come free, and holds back one permit for it, whichever it asks for, for the time
-- of a reservation. The score of the entry of a notified waiter is -<ms>, the end of that
-- reservation by the server's clock.
--@needs items queue
local seconds, micros = unpack(redis.call('time'))
local clock = seconds * 1000000 + micros
local now_ms = math.floor(clock / 1000)

local function permit_queue_of(key)
  return string.match(key, '^(.*):') .. '@PERMITS_SUFFIX@'
end

-- Returns the entry of a waiter, given the value of one of its tries.
local function entry_of(value, caller_channel, reservation, permits)
  local ident = string.sub(value, 1, 20) .. string.rep('0', 20) .. string.sub(value, 41)
  return table.concat({ident, caller_channel, reservation, '0', permits}, ' ')
end

-- Returns the keys of the free permits, and 'f' and their map (hexadecimal digits for four permits
-- each, permit 0 in the lowest bit of the first); no keys and nil if `reserved` or fewer are free.
-- It takes two commands, however many permits there are.
local function scan(key, permits, reserved)
  local name, keys = string.match(key, '^.*:'), {}
  for i = 1, permits do keys[i] = name .. (i - 1) end
  local taken = redis.pcall('exists', unpack(keys))
  if type(taken) == 'number' and permits - taken <= reserved then return {}, nil end
  local values, absent = redis.pcall('mget', unpack(keys)), 0
  for i = 1, permits do absent = absent + (values[i] and 0 or 1) end
  -- MGET shows no value of another type, and none to a caller without the right to it, who may
  -- have no right to EXISTS, too.
  local are_free = type(taken) == 'number' and absent == permits - taken
  local free, map, digit = {}, {'f'}, 0
  for i, permit in ipairs(keys) do
    if not values[i] and (are_free or redis.pcall('pttl', permit) == -2) then
      digit = digit + 2 ^ ((i - 1) % 4)
      free[#free + 1] = permit
    end
    if i % 4 == 0 or i == #keys then
      map[#map + 1] = string.format('%x', digit)
      digit = 0
    end
  end
  return free, table.concat(map)
end

-- Returns the number of notified waiters, the ms for which permits are open to all clients (nil: they
-- are not), and whether this call has found that time to be over. Notified waiters that have not
-- asked within their reservation lose their entries.
local function front_of(queue)
  for _, entry in ipairs(redis.pcall('zrange', queue, text(-now_ms), -1, 'byscore')) do
    redis.pcall('zrem', queue, entry)
  end
  local open = redis.pcall('zrange', queue, 0, 0, 'byscore')[1]
  local left = open and open_ms(open, now_ms) or 0
  if open and left <= 0 then redis.pcall('zrem', queue, open) end
  local sent = redis.pcall('zcount', queue, '-inf', -1)
  return type(sent) == 'number' and sent or 0, left > 0 and left or nil, open and left <= 0
end

-- Returns the entry that comes after `count` others, and its score.
local function waiting(queue, count)
  local first = redis.pcall('zrange', queue, 0, count, 'withscores')
  return first[2 * count + 1], first[2 * count + 2]
end

-- Notifies a waiter whose client may not listen. Returns like push(), without a right to PUBSUB too.
local function send(key, value, channel_of, ms)
  return is_deaf(channel_of) and 0 or push(key, value, channel_of, 0, clock, ms)
end

-- Notifies a waiter of a permit, and reserves one for it. Returns whether its client listens; nil
-- if the caller has no right to notify it. A waiter whose client does not listen loses its entry.
local function reserve(queue, entry, key)
  local value, channel_of, reservation = parts_of(entry)
  local heard = 0
  if value then heard = send(key, value, channel_of, 0) end
  if not heard then return nil end
  local done = heard == 0 and redis.pcall('zrem', queue, entry) or
    redis.pcall('zadd', queue, text(-now_ms - (reservation or 0)), entry)
  if type(done) ~= 'number' then return nil end
  return heard > 0
end

-- Returns whether an entry is one of the first `room` that wait, while permits are open to all
-- clients: then the "open" member is between these entries and the `sent` notified ones.
local function is_near(queue, sent, room, mine)
  for _, entry in ipairs(redis.pcall('zrange', queue, sent + 1, sent + room)) do
    if entry == mine then return true end
  end
  return false
end

-- Notifies the first waiters until every free permit is reserved, or the caller's entry is reached
-- (nil: the caller has none). Returns the map of the free permits if the caller may take one, or
-- nil. No waiter overtakes another, not even while permits are open to all clients, or at the call's
-- bound on entries.
local function offer(queue, key, permits, mine)
  local sent, open_for = front_of(queue)
  local free, map = scan(key, permits, sent)
  if open_for and sent < #free then
    return (not mine or is_near(queue, sent, #free - sent, mine)) and map or nil
  end
  while sent < #free do
    local entries = redis.pcall('zrange', queue, sent, #free - 1)
    if not entries[1] then return map end
    for _, entry in ipairs(entries) do
      if entry == mine then return map end
      if not may_handle() then return nil end
      local heard = reserve(queue, entry, free[sent + 1])
      if heard == nil then return map end
      if heard then sent = sent + 1 end
    end
  end
  return nil
end

-- Opens permits to all clients for a while after 1 release in 128, as for keys (parts/grants.lua).
-- Returns whether it does; the first waiter is then notified to ask again later.
local function open_queue(queue, caller, entry, ticket)
  if (tonumber(string.sub(caller, 39, 40), 16) or 255) > 1 then return false end
  local value, channel_of = parts_of(entry)
  local ms = opening(queue, clock - ticket)
  if not value or (send(queue, value, channel_of, ms) or 0) == 0 then return false end
  return type(redis.pcall('zadd', queue, 0, 'open ' .. text(now_ms + ms))) == 'number'
end

-- Of a permit that has come free while permits are open to all clients: notifies the waiter that may
-- take it to ask after that time. Those before it have been notified of the other free permits.
local function postpone(queue, key, sent, ms)
  local entry = waiting(queue, sent + 1)
  local _, _, _, _, permits = parts_of(entry or '')
  local last = permits and #scan(key, permits, sent) or 0
  while last > sent and may_handle() do
    entry = redis.pcall('zrange', queue, last, last)[1]
    local value, channel_of = parts_of(entry or '')
    if not value or send(queue, value, channel_of, ms) ~= 0 then return end
    if type(redis.pcall('zrem', queue, entry)) ~= 'number' then return end
  end
end

-- Offers the free permits to the remaining waiters.
local function offer_all(queue, key)
  local _, _, _, _, permits = parts_of(waiting(queue, (front_of(queue))) or '')
  if permits then offer(queue, key, permits, nil) end
end

-- Notifies the first waiter whose client listens of a permit that has just come free.
local function pass_on(queue, key, caller)
  local sent, open_for, has_closed = front_of(queue)
  if open_for then return postpone(queue, key, sent, open_for) end
  if has_closed then return offer_all(queue, key) end
  local entry, ticket = waiting(queue, sent)
  if not entry or open_queue(queue, caller, entry, ticket) then return end
  while entry and may_handle() and reserve(queue, entry, key) == false do
    entry = waiting(queue, sent)
  end
end

-- Removes the entries of a waiter from the queue, except the entry `but`: after a reconnect a
-- waiter has a new channel, and so another entry. Returns whether a permit was reserved for one of
-- them. The "open" member is removed with the last entry.
local function leave_queue(queue, value, ticket, but)
  local was_sent = false
  local function drop(least, most)
    for _, entry in ipairs(redis.pcall('zrange', queue, least, most, 'byscore')) do
      if string.sub(entry, 1, 20) == string.sub(value, 1, 20) and entry ~= but then
        redis.pcall('zrem', queue, entry)
        was_sent = was_sent or least ~= ticket
      end
    end
  end
  drop('-inf', -1)
  drop(ticket, ticket)
  local rest = redis.pcall('zrange', queue, 0, 1, 'withscores')
  if #rest == 2 and rest[2] == '0' then redis.pcall('zrem', queue, rest[1]) end
  return was_sent
end
