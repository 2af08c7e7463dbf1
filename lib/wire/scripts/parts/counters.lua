-- Defines the counters of fenced locks: is_fenced, count_of, raised, raise, grant, granted.
--
-- An acquisition takes a range of @FENCE_RANGE@ numbers, which its client may use without another
-- message (core/handover.h). The counter becomes the end of the range. So each range is above
-- all numbers up to the earlier counter, also above single numbers.

-- Returns whether waiters whose queue entries have this form get a range of fences.
local function is_fenced(form)
  return form == 'n' or form == 'v' or form == 'g'
end

-- Returns the counter plus `step`, the length of a range or 0; or false if the key does not hold a
-- counter: a whole number, not below 0, and below 2^53 with the step. Above 2^53 Lua cannot count by
-- one. Throws an error of the server other than WRONGTYPE; for a counter of another lock
-- (is_of_another) returns nil instead.
local function count_of(counter, step, is_of_another)
  local value = redis.pcall('get', counter)
  local err = type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true)
  if err and is_of_another then return nil end
  if err then error(value.err) end
  local count = type(value) == 'string' and tonumber(value)
  if value == false then count = 0 end
  if not count or count < 0 or count % 1 ~= 0 then return false end
  return count + step < 2 ^ 53 and count + step
end

-- Returns the larger of a count and `from`. `from` counts up to 1 day ahead of the server's clock,
-- so that the clock of one client cannot push a key's numbers further. For a waiter it is the
-- ticket.
local function raised(count, from)
  local seconds, micros = unpack(redis.call('time'))
  return math.max(count, math.min(tonumber(from), seconds * 1000000 + micros + @FENCE_AHEAD@))
end

-- Writes the counter, with an expiry of `idle` ms, or none if `idle` is '0'.
local function raise(counter, count, idle)
  local number = string.format('%.0f', count)
  if idle == '0' then
    redis.call('set', counter, number)
  else
    redis.call('set', counter, number, 'PX', idle)
  end
end

-- Returns the item of a granted fenced lock.
local function grant(count)
  return 'y' .. string.format('%.0f', count)
end

-- Returns the item of a key that the waiter has; advances its counter, if fenced, by `step`, and to
-- `least` at least.
local function granted(key, fenced, idle, step, least)
  if not fenced then return 'y' end
  local count = raised(count_of(key .. '@COUNTER_SUFFIX@', step), least)
  raise(key .. '@COUNTER_SUFFIX@', count, idle)
  return grant(count)
end
