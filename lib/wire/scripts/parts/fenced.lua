-- Defines is_fenced.

-- Tells whether waiters whose entries are of a form get a fence with the key.
local function is_fenced(form)
  return form == '1' or form == 'x' or form == 'f'
end
