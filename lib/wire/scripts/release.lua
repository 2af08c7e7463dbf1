-- RELEASE deletes each key that has the caller's value (Redlock, "Basic algorithm").
--
-- keys:      key
-- arguments: value
-- answer:    y, m, h<ms>, p or t for each key
--@include parts/otherwise.lua

for i, key in ipairs(KEYS) do
  local value = redis.pcall('get', key)
  if value == ARGV[i] then
    redis.call('del', key)
    answer[i] = 'y'
  else
    answer[i] = otherwise(key, value)
  end
end
return table.concat(answer)
