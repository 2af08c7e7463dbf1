-- PERMIT_END deletes the key of each permit that has the caller's value, and tells the first that
-- waits for a permit of the semaphore. With a ticket it also takes the place of the caller out of
-- the line. A caller without the right to look for waiters deletes.
--
-- keys:      key
-- arguments: value, ticket or 0
-- answer:    y, m, h<ms>, p or t for each key
--@include parts/otherwise.lua
--@include parts/queue.lua
--@include parts/permits.lua

-- Offers a permit that was reserved for a waiter that has left to those who still wait.
local function give_back(line, key)
  local _, _, _, _, permits = parts_of(waiting(line, #front_of(line)) or '')
  if permits then offer(line, (look(key, permits)), nil) end
end

local waits = redis.pcall('exists', '@WAITING_KEY@') == 1
for i, key in ipairs(KEYS) do
  local token, ticket = ARGV[2 * i - 1], ARGV[2 * i]
  local value, line = redis.pcall('get', key), line_of(key)
  local was_told = ticket ~= '0' and leave_line(line, token, ticket)
  if value == token then
    redis.call('del', key)
    if waits then pass_on(line, key, token) end
    answer[i] = 'y'
  else
    answer[i] = otherwise(key, value)
  end
  if was_told then give_back(line, key) end
end
return table.concat(answer)
