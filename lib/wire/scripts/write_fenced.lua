-- WRITE_FENCED takes each key for a writer like WRITE, and counts like TAKE with a step of 1.
--
-- keys:      key, readers, writer (the intent), counter
-- arguments: value, ttl_ms, intent_ms, fence, counter_ttl_ms
-- answer:    y<n>, h<ms>, p, t or c for each key
--@needs readers
needs_count = true
return write(4, 5)
