-- Defines text.

-- Returns a whole number as digits.
local function text(number) return string.format('%.0f', number) end
