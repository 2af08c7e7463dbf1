-- Defines refusal_of.

-- Changes nothing, by commands that change a queue. Returns the server's refusal: for want of a
-- right, or of memory, which a server that is full refuses to the first command alone; or nil.
local function refusal_of(queue)
  local reply = redis.pcall('zadd', queue, 'xx', 0, '')
  if type(reply) == 'number' then reply = redis.pcall('zrem', queue, '') end
  return type(reply) == 'table' and reply.err or nil
end
