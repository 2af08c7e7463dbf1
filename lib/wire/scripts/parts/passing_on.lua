-- Defines pass of parts/passing.lua; and make, which returns a table of pass, and of was_given and
-- several (parts/several.lua). These are made when they are first needed: most calls pass no key on,
-- and the definitions take time.

local made

local function make()
  if not made then
    --@needs passing
    made = {pass = pass, was_given = was_given, several = several}
  end
  return made
end

local function pass(key, caller, mine)
  return make().pass(key, caller, mine)
end
