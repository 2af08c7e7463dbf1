/*
 * Shows the state of the gateway, which /v1/events tells once a second. The events are read by
 * fetch(), because EventSource cannot show a token. Texts are only ever set as text. A screen
 * reader is told when a master comes or goes, and when the connection does; not of each second.
 */
"use strict";

const RETRY_MS = 1000;
const SILENCE_MS = 5000;
const states = new Map(); // by master, as told last
const element = (id) => document.getElementById(id);

function setText(target, text, mode) {
    if (target.textContent !== text) {
        target.textContent = text;
    }
    target.className = mode ?? "";
}

function milliseconds(ms) {
    if (ms < 1000) {
        return ms < 10 ? `${ms.toFixed(2)} ms` : `${Math.round(ms)} ms`;
    }
    const seconds = Math.floor(ms / 1000);
    if (seconds < 60) {
        return `${seconds} s`;
    }
    return seconds < 3600
        ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
        : `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

/* Fills a table, one row an array of [text, class]; the first cell heads its row. */
function setRows(id, rows, columns) {
    const body = element(id);
    if (rows.length === 0) {
        rows = [[["none", "empty"]]];
    }
    while (body.rows.length > rows.length) {
        body.deleteRow(-1);
    }
    rows.forEach((cells, index) => {
        const row = body.rows[index] ?? body.insertRow();
        while (row.cells.length > cells.length) {
            row.deleteCell(-1);
        }
        cells.forEach(([text, mode], column) => {
            let cell = row.cells[column];
            if (!cell) {
                cell = document.createElement(column === 0 ? "th" : "td");
                if (column === 0) {
                    cell.scope = "row";
                }
                row.append(cell);
            }
            cell.colSpan = cells.length === 1 ? columns : 1;
            setText(cell, text, mode);
        });
    });
}

/*
 * Shows a key in its script. "%" stays as it stands in a path, and so does what cannot be read or
 * is not seen: no two keys look the same.
 */
function legible(key) {
    return key.replace(/(?:%[0-9A-F]{2})+/g, (bytes) => {
        try {
            return decodeURIComponent(bytes).replace(/(?! )[%\p{C}\p{Z}]/gu, encodeURIComponent);
        } catch {
            return bytes; // no UTF-8
        }
    });
}

/* Tells how many rows of a table the gateway has left out. */
function showCut(id, shown, count) {
    setText(element(id), shown < count ? `${shown} of ${count} are shown.` : "");
}

function stateOf(node) {
    if (!node.connected) {
        return ["down", "bad", node.reason];
    }
    if (!node.trusted) {
        const wait = node.trusted_in_ms > 0 ? `, for ${milliseconds(node.trusted_in_ms)} more` : "";
        return ["not trusted", "warn", node.reason + wait];
    }
    return ["trusted", "good", ""];
}

function showNodes(status) {
    const changes = [];
    let good = 0;
    const rows = status.nodes.map((node) => {
        const [state, mode, reason] = stateOf(node);
        const before = states.get(node.node);
        good += state === "trusted" ? 1 : 0;
        if (before !== undefined && before !== state) {
            changes.push(`${node.node} is ${state}`);
        }
        states.set(node.node, state);
        return [
            [node.node, ""],
            [reason ? `${state}: ${reason}` : state, mode],
            [milliseconds(node.p50_ms), "number"],
            [milliseconds(node.p99_ms), "number"],
        ];
    });
    setRows("nodes", rows, 4);
    setText(
        element("quorum"),
        `${good} of ${rows.length} grant locks; ${status.quorum} are needed.`,
        good >= status.quorum ? "good" : "bad"
    );
    if (changes.length > 0) {
        element("changes").textContent = `${changes.join(". ")}. ${element("quorum").textContent}`;
    }
}

function showNumber(id, text) {
    const target = element(id);
    if (target.textContent !== text) {
        setText(target, text, "changed");
    } else {
        target.className = "";
    }
}

function show(status) {
    showNumber("held", String(status.held));
    showNumber("waiting", String(status.waiting));
    showNumber("handovers", String(status.handovers));
    showNumber("lost", String(status.lost));
    setText(element("uptime"), milliseconds(status.uptime_ms));
    showNodes(status);
    setRows(
        "latencies",
        Object.entries(status.latencies).map(([name, times]) => [
            [name, ""],
            [String(times.count), "number"],
            [times.count > 0 ? milliseconds(times.p50_ms) : "", "number"],
            [times.count > 0 ? milliseconds(times.p99_ms) : "", "number"],
        ]),
        4
    );
    setRows(
        "locks",
        status.locks.map((lock) => [
            [legible(lock.key), "key"],
            [lock.owner, ""],
            [lock.mode, ""],
            [lock.fence === null ? "" : String(lock.fence), "number"],
            [milliseconds(lock.validity_ms), "number"],
        ]),
        5
    );
    showCut("locks-shown", status.locks.length, status.held);
    setRows(
        "waiters",
        status.waiters.map((waiter) => [
            [legible(waiter.key), "key"],
            [waiter.owner, ""],
            [waiter.mode, ""],
            [milliseconds(waiter.waited_ms), "number"],
        ]),
        4
    );
    showCut("waiters-shown", status.waiters.length, status.waiting);
    element("main").hidden = false;
    element("main").className = "";
    setText(element("state"), "live", "good");
}

/* Has the page look like what it is: the last state that is known. */
function showStale(problem) {
    const quorum = element("quorum");
    if (element("main").className !== "stale") {
        element("main").className = "stale";
        setText(quorum, `Last known: ${quorum.textContent}`, quorum.className);
    }
    setText(element("state"), `${problem} Trying again …`, "bad");
}

/* Reads the events of one connection until its end, or a silence. */
async function follow(response, abort) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
        const silence = setTimeout(() => abort.abort(), SILENCE_MS);
        const { done, value } = await reader.read();
        clearTimeout(silence);
        if (done) {
            return;
        }
        const events = (text + value).split("\n\n");
        text = events.pop();
        for (const event of events) {
            show(JSON.parse(event.replace(/^data: /, "")));
        }
    }
}

function askForToken(refused) {
    sessionStorage.removeItem("token");
    element("login").hidden = false;
    element("main").hidden = true;
    setText(element("state"), refused ? "That token is not known." : "A token is needed.", "warn");
    element("token").focus();
}

async function connect() {
    const abort = new AbortController();
    const token = sessionStorage.getItem("token");
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    let problem = "The gateway does not answer.";
    try {
        const response = await fetch("v1/events", { headers, signal: abort.signal });
        if (response.status === 401) {
            askForToken(token !== null);
            return;
        }
        if (response.ok) {
            await follow(response, abort);
        } else {
            problem = (await response.json()).detail;
        }
    } catch {
        // told below
    }
    showStale(problem);
    setTimeout(connect, RETRY_MS);
}

element("login").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", element("token").value);
    element("token").value = "";
    element("login").hidden = true;
    connect();
});
connect();
