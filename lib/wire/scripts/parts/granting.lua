-- Defines granted.
--@needs counters

-- Returns the item of a key that is the waiter's; its counter, if fenced, is to be at least `least`.
local function granted(key, fenced, idle, step, least)
  if not fenced then return 'y' end
  local count = hinted(count_of(key .. '@COUNTER_SUFFIX@', step), least)
  raise(key .. '@COUNTER_SUFFIX@', count, idle)
  return grant(count)
end
