-- Defines the end of a share: finish.
--@needs otherwise keeping passing

-- Takes a reader out of the list. With the last reader the key is passed on, if anybody may be
-- waiting, or deleted. Returns the item.
local function finish(key, readers, reader, waiting)
  local value = redis.pcall('get', key)
  if not is_shared(key, value, readers, now) then return otherwise(key, value) end
  if listed(readers, reader) == 0 then return 'm' end
  redis.call('zrem', readers, reader)
  if not settle(key, readers) and not (waiting and pass(key, reader) == true) then
    redis.call('del', key, readers)
  end
  return 'y'
end
