-- PROBE publishes a text on a channel from a script, as the scripts that wake a waiter do: a user
-- that may call PUBLISH may still be refused it inside a script.
--
-- keys:      none
-- ARGV:      channel, text
-- answer:    the number of connections that got the text; or the server's error if the caller has
--            no right to the channel or to PUBLISH
return redis.pcall('publish', ARGV[1], ARGV[2])
