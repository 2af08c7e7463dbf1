-- Settings for the scripts as servers are sent them: see test/scripts.sh.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV" }
max_line_length = 100
