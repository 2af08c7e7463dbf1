-- Settings for the scripts as servers are sent them: see test/scripts.sh.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV" }
max_line_length = 100
-- Functions of the parts (lib/wire/scripts/parts), which not every script calls.
ignore = {
  "211/announce", "211/entry_of", "211/grant", "211/hinted", "211/leave_line", "211/list", "211/listed",
  "211/more", "211/offer_all", "211/pass_on", "211/raise", "211/refusal_of", "211/was_given"
}
