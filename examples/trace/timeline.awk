# Converts a trace (lines.h) to a timeline for Perfetto (ui.perfetto.dev) and chrome://tracing:
#
#     awk -f timeline.awk trace.txt >trace.json
#
# Each request has its own row, with the states of its lock as slices, and its votes and the
# application's callbacks as instants; its rounds are in rows beside it. Each node has a row for its
# events. The format is the "Trace Event Format", a JSON object with "traceEvents".

# Writes one event of the timeline: the members of an object, without its braces.
function put(members) {
    printf "%s\n{%s}", separator, members
    separator = ","
}

function quoted(text) {
    return "\"" text "\""
}

# Returns the arguments of the line, its fields from the fourth on, as an object.
function arguments(    i, at, list) {
    list = "\"node\":" quoted($4)
    for (i = 5; i <= NF; i++) {
        at = index($i, "=")
        list = list "," quoted(substr($i, 1, at - 1)) ":" quoted(substr($i, at + 1))
    }
    return "\"args\":{" list "}"
}

# Returns the value of a field of the line; "" if the line lacks the field.
function value(name,    i) {
    for (i = 5; i <= NF; i++) {
        if (index($i, name "=") == 1) {
            return substr($i, length(name) + 2)
        }
    }
    return ""
}

function place(process, row, time) {
    return sprintf("\"pid\":%d,\"tid\":%d,\"ts\":%.3f", process, row, time)
}

function name_row(process, row, name) {
    put("\"ph\":\"M\",\"name\":\"thread_name\"," place(process, row, 0) \
        ",\"args\":{\"name\":" quoted(name) "}")
}

function name_process(process, name) {
    put("\"ph\":\"M\",\"name\":\"process_name\"," place(process, 0, 0) \
        ",\"args\":{\"name\":" quoted(name) "}")
}

# Writes the line as an instant.
function put_instant(process, row, name) {
    put("\"ph\":\"i\",\"s\":\"t\",\"cat\":" quoted($3) ",\"name\":" quoted(name) "," \
        place(process, row, now) "," arguments())
}

# Writes the current state of a request when the state ends.
function end_state(request) {
    if (request in state) {
        put("\"ph\":\"X\",\"cat\":\"state\",\"name\":" quoted(state[request]) "," \
            place(REQUESTS, request, since[request]) sprintf(",\"dur\":%.3f", now - since[request]))
        delete state[request]
    }
}

function begin_state(request, name) {
    end_state(request)
    if (name != "over") {
        state[request] = name
        since[request] = now
    }
}

# Writes the beginning ("b") or the end ("e") of a round, which may overlap others.
function put_round(phase, request, round, details) {
    put("\"ph\":" quoted(phase) ",\"cat\":\"round\",\"id\":" quoted(request "." round) \
        ",\"name\":" quoted(round " round") "," place(REQUESTS, request, now) details)
}

function end_round(request, round, details) {
    if ((request, round) in rounds) {
        delete rounds[request, round]
        put_round("e", request, round, details)
    }
}

function begin_round(request, round) {
    end_round(request, round, "")
    rounds[request, round] = 1
    put_round("b", request, round, "," arguments())
}

BEGIN {
    REQUESTS = 1
    NODES = 2
    printf "{\"traceEvents\":["
    name_process(REQUESTS, "requests")
    name_process(NODES, "nodes")
    name_row(REQUESTS, 0, "pending releases")
    name_row(NODES, 0, "changes of the list")
}

{
    if (NR == 1) {
        start = $1
    }
    now = ($1 - start) / 1000
    request = $2
}

request > 0 && !(request in named) {
    named[request] = 1
    name_row(REQUESTS, request, "request " request ": " value("key"))
}

request == 0 && $4 != "-" && !($4 in rows) {
    rows[$4] = ++row_count
    name_row(NODES, row_count, $4)
}

$3 == "lock_asked" { begin_state(request, "acquiring") }
$3 == "lock_changed" { begin_state(request, value("after")) }
$3 == "round_sent" { begin_round(request, value("round")) }
$3 == "round_decided" { end_round(request, value("round"), "," arguments()) }
$3 == "vote_cast" { put_instant(REQUESTS, request, value("vote") " by " $4) }
$3 ~ /^lock_(asked|acquired|extended|lost|released)$/ { put_instant(REQUESTS, request, $3) }
$3 == "release_dropped" { put_instant(REQUESTS, request, $3) }
$3 ~ /^(node|channel|address|tracking|pending_releases)_/ { put_instant(NODES, rows[$4], $3) }
$3 ~ /^change_/ { put_instant(NODES, 0, $3) }

END {
    for (request in state) {
        end_state(request)
    }
    for (key in rounds) {
        split(key, parts, SUBSEP)
        end_round(parts[1], parts[2], "")
    }
    printf "\n]}\n"
}
