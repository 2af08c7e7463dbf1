# Applies a mutant to sources, and prints the names of the files that it changes.
#
#     awk [-v folder=FOLDER] -f mutate.awk MUTANT SOURCE...
#
# The changed sources are written below FOLDER, whose own folders exist; without it, in place.
#
# A mutant is a sentence and one or more edits. An edit begins with a line "@@"; its lines begin
# with " " (kept), "-" (removed) or "+" (added). The lines with " " and "-" must occur exactly once
# in all sources. A mutant does not name a file, so that code may move.

function fail(message) {
    print mutant ": " message > "/dev/stderr"
    failed = 1
    exit 1
}

# Completes the edit that is being read.
function end_edit() {
    if (edits > 0 && before[edits] == after[edits]) {
        fail("edit " edits " changes nothing")
    }
}

# Returns how often `text` occurs in `whole`, starting at the beginning of a line.
function occurrences(whole, text,    count, at) {
    whole = "\n" whole
    text = "\n" text
    count = 0
    while ((at = index(whole, text)) > 0) {
        count++
        whole = substr(whole, at + 1)
    }
    return count
}

# Replaces the first occurrence at the beginning of a line.
function replace(whole, old, new,    at) {
    at = index("\n" whole, "\n" old)
    return substr(whole, 1, at - 1) new substr(whole, at + length(old))
}

function apply(edit,    i, count, found, target) {
    found = 0
    for (i = 1; i <= sources; i++) {
        count = occurrences(text[i], before[edit])
        found += count
        if (count > 0) {
            target = i
        }
    }
    if (found != 1) {
        fail("edit " edit ": its old text stands in " found " places, not in one:\n" before[edit])
    }
    text[target] = replace(text[target], before[edit], after[edit])
    changed[target] = 1
}

FNR == 1 && NR == 1 { mutant = FILENAME }
FNR == 1 && NR != 1 { name[++sources] = FILENAME }

FILENAME != mutant { text[sources] = text[sources] $0 "\n"; next }

/^@@$/ { end_edit(); edits++; next }
edits == 0 || /^$/ { next }
/^[ -]/ { before[edits] = before[edits] substr($0, 2) "\n" }
/^[ +]/ { after[edits] = after[edits] substr($0, 2) "\n" }
!/^[ +-]/ { fail("line " FNR ": an edit's lines begin with \" \", \"-\" or \"+\"") }

END {
    if (failed) {
        exit 1
    }
    end_edit()
    if (edits == 0) {
        fail("it has no edit")
    }
    for (edit = 1; edit <= edits; edit++) {
        apply(edit)
    }
    for (i = 1; i <= sources; i++) {
        if (changed[i]) {
            printf "%s", text[i] > (folder != "" ? folder "/" : "") name[i]
            print name[i]
        }
    }
}
