-- Defines make, which returns several of parts/several.lua; pass of parts/passing.lua, and was_given.
-- They are made when they are first needed: most calls pass no key on, and the definitions take
-- time. Needs parts/counters.lua, parts/fenced.lua and parts/queue.lua.

local passer, given_to, several_of

local function make()
  if not passer then
--@include parts/shared.lua
--@include parts/several.lua
--@include parts/passing.lua
    passer, given_to, several_of = pass, was_given, several
  end
  return several_of
end

local function pass(key, caller, mine)
  make()
  return passer(key, caller, mine)
end

-- Tells whether the call gave a key away that had the value (parts/several.lua).
local function was_given(key, value)
  return given_to and given_to(key, value)
end
