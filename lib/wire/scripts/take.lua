-- TAKE takes all keys of each lock or none, as SET NX PX takes one key. A key that has the caller's
-- value already (a repeated top-up) stays as it is. A fenced lock has a counter beside each key,
-- which outlives the lock: TAKE sets all of its counters to one number, the largest of `fence` and
-- each counter plus the length of a range. A top-up does not advance a counter that equals `fence`,
-- so that the counters of a lock stay equal. It does advance past a larger counter, by a whole
-- range: another holder may have got the range that ends there, and a later range of this lock must
-- not overlap it.
--
-- keys:      all keys of a lock; then all of its counters, if fenced
-- arguments: value, ttl_ms, key_count, is_fenced, fence, step, counter_ttl_ms
-- answer:    y, h<ms>, p, t or c for each lock; y<n> if fenced
--@needs items counters

local k, a = 1, 1
while k <= #KEYS do
  local token, n, fenced = ARGV[a], tonumber(ARGV[a + 2]), ARGV[a + 3] == '1'
  local fence, is_new, refusal = tonumber(ARGV[a + 4]), ARGV[a + 5] == '1', nil
  local count = is_new and fenced and raised(@FENCE_RANGE@, fence) or fence
  for i = k, k + n - 1 do
    local value = redis.pcall('get', KEYS[i])
    if value ~= false and value ~= token then
      refusal = worse(refusal, not_owned(KEYS[i], value))
    end
    local counted = not fenced or count_of(KEYS[i + n], @FENCE_RANGE@)
    if not counted then
      refusal = worse(refusal, 'c')
    elseif fenced and (is_new or counted > fence + @FENCE_RANGE@) then
      count = math.max(count, counted)
    end
  end
  -- All keys or none: a holder of some of the keys could deadlock with a holder of the others.
  for i = k, k + n - 1 do
    if refusal then break end
    redis.call('set', KEYS[i], token, 'PX', ARGV[a + 1], 'NX')
    if fenced then raise(KEYS[i + n], count, ARGV[a + 6]) end
  end
  answer[#answer + 1] = refusal or fenced and grant(count) or 'y'
  k, a = k + n * (fenced and 2 or 1), a + 7
end
return table.concat(answer)
