-- PERMIT takes a permit of a semaphore: as SET NX PX does or, with a fence above 0, as TAKE does
-- with a step of 1. The key is "<name>:<i>"; the keys of the semaphore's other permits differ in
-- <i> alone. Where the permit is refused the answer tells which permits are free: PERMIT then reads
-- the keys of all permits, which are not among KEYS, because 256 of them would be many to send.
--
-- keys:      key
-- arguments: value, TTL in ms, fence or 0, TTL of the counter in ms or 0, number of permits
-- answer:    y for each key, y<n> if fenced; otherwise h<ms>f<map>, pf<map> or tf<map>
--@include parts/otherwise.lua
--@include parts/counters.lua

-- Returns 'f' and the map of free permits: hexadecimal digits of four permits each, the first digit
-- and its lowest bit for permit 0.
local function free(key, permits)
  local name, map, digit = string.match(key, '^.*:'), {'f'}, 0
  for i = 0, permits - 1 do
    if redis.pcall('get', name .. i) == false then digit = digit + 2 ^ (i % 4) end
    if i % 4 == 3 or i == permits - 1 then
      map[#map + 1] = string.format('%x', digit)
      digit = 0
    end
  end
  return table.concat(map)
end

for i, key in ipairs(KEYS) do
  local token, fence = ARGV[5 * i - 4], tonumber(ARGV[5 * i - 2])
  local counter, value, count = key .. '@COUNTER_SUFFIX@', redis.pcall('get', key), 0
  if fence > 0 then count = count_of(counter, 1) end
  if count and (value == false or value == token) then
    if not value then redis.call('set', key, token, 'PX', ARGV[5 * i - 3]) end
    answer[i] = 'y'
    if fence > 0 then
      count = math.max(count, fence)
      raise(counter, count, ARGV[5 * i - 1])
      answer[i] = grant(count)
    end
  else
    local what = count and otherwise(key, value) or 't'
    answer[i] = what .. free(key, tonumber(ARGV[5 * i]))
  end
end
return table.concat(answer)
