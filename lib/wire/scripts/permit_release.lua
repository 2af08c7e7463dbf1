-- PERMIT_RELEASE deletes the key of each permit that has the caller's value, and notifies the first
-- waiter of the semaphore. With a ticket it also removes the caller's queue entry. If the caller
-- has no right to look for waiters, it only deletes.
--
-- keys:      key
-- arguments: value, ticket
-- answer:    y, m, h<ms>, p or t for each key, with a '+' where PASS must go on
--@needs items queue permits

for i, key in ipairs(KEYS) do
  local token, ticket = ARGV[2 * i - 1], ARGV[2 * i]
  local value, queue = redis.pcall('get', key), permit_queue_of(key)
  local was_sent = ticket ~= '0' and leave_queue(queue, token, ticket)
  if value == token then
    redis.call('del', key)
    if redis.pcall('exists', queue) == 1 then pass_on(queue, key, token) end
    answer[i] = 'y'
  else
    answer[i] = not_owned(key, value)
  end
  -- A permit was reserved for the waiter that leaves.
  if was_sent then offer_all(queue, key) end
  answer[i] = answer[i] .. more()
end
return table.concat(answer)
