-- WRITE takes each key for a writer, like SET NX PX. Where readers hold the key, WRITE leaves an
-- intent for `intent` ms, unless a longer one is there: SHARE admits no new reader while it lasts.
-- Taking the key removes the intent and any list of readers.
--
-- keys:      key, readers, writer (the intent)
-- arguments: value, ttl_ms, intent_ms
-- answer:    y, h<ms>, p or t for each key
--@needs readers
needs_count = true
return write(3, 3)
