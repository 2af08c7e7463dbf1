-- WRITE takes each key for a writer, as SET NX PX does. Where readers hold the key, WRITE leaves a
-- intent for `intent` ms, unless one that lasts longer is there: SHARE lets no new reader in
-- meanwhile. Taking the key removes the intent and a list of readers.
--
-- keys:      key, readers, writer (the intent)
-- arguments: value, TTL in ms, intent in ms or 0
-- answer:    y, h<ms>, p or t for each key
--@needs readers
needs_count = true
return write(3, 3)
