-- PROBE publishes a text on a channel, as scripts do that wake a waiter: the right to call PUBLISH
-- is not yet the right to call it from a script.
--
-- keys:      none
-- arguments: channel, text
-- answer:    how many connections the text was sent to; the server's refusal where the caller has
--            no right to the channel, or to PUBLISH
return redis.pcall('publish', ARGV[1], ARGV[2])
