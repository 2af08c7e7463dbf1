-- PERMIT takes a permit of a semaphore: like SET NX PX or, with a fence above 0, like TAKE with a
-- step of 1. The key is "<name>:<i>"; the keys of the other permits differ only in <i>. If the
-- permit is refused, the answer reports which permits are free. For this PERMIT looks at the keys
-- of all permits, which are not in KEYS, because up to 256 keys are too many to send.
-- While there are at least as many waiters as free permits, a caller that does not queue gets no
-- permit, and no permit is reported as free.
--
-- keys:      key
-- arguments: value, ttl_ms, fence, counter_ttl_ms, permits
-- answer:    y for each key, y<n> if fenced; otherwise h<ms>f<map>, pf<map>, tf<map> or cf<map>
--@needs items counters queue permits

for i, key in ipairs(KEYS) do
  local token, fence = ARGV[5 * i - 4], tonumber(ARGV[5 * i - 2])
  local counter, value, count = key .. '@COUNTER_SUFFIX@', redis.pcall('get', key), 0
  if fence > 0 then count = count_of(counter, @FENCE_RANGE@) end
  local permits, queue = ARGV[5 * i], permit_queue_of(key)
  local has_queue = redis.pcall('exists', queue) == 1
  local map = has_queue and value ~= token and offer(queue, key, permits)
  if count and (value == token or value == false and (map or not has_queue)) then
    if not value then redis.call('set', key, token, 'PX', ARGV[5 * i - 3]) end
    answer[i] = 'y'
    if fence > 0 then
      count = raised(count, fence)
      raise(counter, count, ARGV[5 * i - 1])
      answer[i] = grant(count)
    end
  else
    if not has_queue then map = select(2, scan(key, permits, 0)) end
    answer[i] = (not count and 'c' or value and not_owned(key, value) or 'h1000') .. (map or 'f')
  end
end
return table.concat(answer)
