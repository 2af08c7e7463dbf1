#include "unit.h"

#include "run.h"

#include "base/nanos.h"

#include <inttypes.h>
#include <string.h>

/* The run under way, for the message of a failure. */
static const struct lease_terms *base_terms;
static const struct run *run;
static size_t row_number;

static const char *const event_names[] = {"END",       "PASS",   "VOTES",  "DENY",  "PUSH",
                                          "CHANGE",    "OPEN",   "JOIN",   "TIMER", "EARLY",
                                          "NO_MEMORY", "UNSENT", "CANCEL", "CLOSE"};

/* ---- expectations ---- */

static void expect(const char *what, uint64_t found, uint64_t wanted) {
    if (found != wanted) {
        print_error("%s: 0x%" PRIx64 " (%" PRIu64 "), not 0x%" PRIx64 " (%" PRIu64 ")\n", what,
                    found, found, wanted, wanted);
        fail();
    }
}

static void expect_unless_0(const char *what, uint64_t found, uint64_t wanted) {
    if (wanted != 0) {
        expect(what, found, wanted);
    }
}

static void expect_state(const struct rig *rig, enum lease_state wanted) {
    if (rig->lease.state != wanted) {
        print_error("state: %s, not %s\n", lease_state_name(rig->lease.state),
                    lease_state_name(wanted));
        fail();
    }
}

static void expect_update(const struct lease_update *update, const struct row *row) {
    expect("sends", update->send ? update->round + 1 : 0, (uint64_t)row->sends);
    expect("keeps_token", update->send && update->keeps_token, row->keeps_token);
    expect("watches", update->watch, row->watches);
    expect("undo", update->undo, row->undo);
    expect("top_up", update->top_up, 0);
    expect("awaited", update->send ? update->awaited : 0, row->awaited);
    expect("notifies", update->notifications, row->notifies);
    if (row->notifies == LEASE_ACQUIRED) {
        expect("why", (uint64_t)update->acquired, (uint64_t)row->why);
    }
}

static void expect_time(const struct rig *rig, const struct row *row, uint64_t wake_at) {
    uint64_t found = rig->lease.wake_at;
    if (row->wakes_to > 0 &&
        (found < rig->now + MS(row->wakes_from) || found > rig->now + MS(row->wakes_to))) {
        print_error("wakes: in %" PRIu64 " ns, not in %" PRIu64 " to %" PRIu64 " ms\n",
                    found - rig->now, row->wakes_from, row->wakes_to);
        fail();
    }
    if (row->wakes_as_before) {
        expect("wakes_as_before", found, wake_at);
    }
    if (row->wakes_to_poll) {
        expect("wakes_to_poll", found, rig->lease.trying.poll_at);
    }
}

static void expect_values(const struct rig *rig, const struct row *row) {
    expect_unless_0("validity", lease_validity(&rig->lease, rig->now), MS(row->validity));
    expect_unless_0("fence", rig->lease.fence, row->fence);
    expect_unless_0("tries", rig->lease.tries, row->tries);
    expect_unless_0("may_hold", rig->lease.may_hold, row->may_hold);
    expect_unless_0("late", round_voters(&rig->round, REDLOCK_VOTE_TIMEOUT), row->late);
}

/* ---- events ---- */

static void deny(struct rig *rig, const struct row *row) {
    uint32_t ttl_ms = row->ms != 0 ? (uint32_t)row->ms : 5000;
    for (uint32_t node = 0; node < REDLOCK_MAX_NODES; node++) {
        if (row->nodes >> node & 1) {
            round_mark_queued(&rig->round, node, row->ahead);
            round_vote(&rig->round, node, REDLOCK_VOTE_DENIED, ttl_ms);
        }
    }
    rig_late_votes(rig);
}

static void open_at(struct rig *rig, uint32_t node, uint64_t ms) {
    expect("awaits a push", round_awaits_push(&rig->round, node), true);
    round_record_open(&rig->round, node, (uint32_t)ms);
    if (rig->lease.state == LEASE_QUEUED) {
        rig_late_votes(rig);
    }
}

/* Handles an event of a single node; that of the node before had no effect. */
static void at_node(struct rig *rig, const struct row *row, uint32_t node) {
    expect("sends", rig->update.send, false);
    expect("notifies", rig->update.notifications, 0);
    if (row->event == PUSH) {
        rig_push(rig, node, rig->now + MS(row->ms));
    } else if (row->event == CHANGE) {
        rig_key_changed_at(rig, node);
    } else {
        open_at(rig, node, row->ms);
    }
}

static void happen(struct rig *rig, const struct row *row) {
    rig->counter = row->counter != 0 ? row->counter : rig->counter;
    switch (row->event) {
    case END:
    case PASS:
        rig_pass(rig, MS(row->ms));
        break;
    case VOTES:
        rig_votes(rig, row->votes);
        break;
    case DENY:
        deny(rig, row);
        break;
    case PUSH:
    case CHANGE:
    case OPEN:
        for (uint32_t node = 0; node < REDLOCK_MAX_NODES; node++) {
            if (row->nodes >> node & 1) {
                at_node(rig, row, node);
            }
        }
        break;
    case JOIN:
        rig_ask_again(rig);
        break;
    case TIMER:
        rig_wake_on_time(rig);
        break;
    case EARLY:
        rig_wake(rig);
        break;
    case NO_MEMORY:
        rig->without_memory = true;
        break;
    case UNSENT:
        rig_out_of_memory(rig);
        break;
    case CANCEL:
        expect("cancel", (uint64_t)rig_cancel(rig), REDLOCK_OK);
        break;
    case CLOSE:
        rig_close(rig);
        break;
    }
}

/* ---- runs ---- */

#define REPLACE(field)                                                                             \
    if (run->terms.field) {                                                                        \
        terms.field = run->terms.field;                                                            \
    }

static struct lease_terms terms_of_run(void) {
    struct lease_terms terms = *base_terms;
    REPLACE(ttl)
    REPLACE(wait)
    REPLACE(retries)
    REPLACE(min_validity)
    REPLACE(watchdog)
    REPLACE(fenced)
    REPLACE(reservation)
    REPLACE(trusts_pushes)
    return terms;
}

static void go_through(void **state) {
    struct lease_terms terms;
    struct rig rig;
    run = *state;
    row_number = 0;
    terms = terms_of_run();
    if (run->lists.now != 0) {
        rig_start_at(&rig, &terms, run->lists, 1);
    } else {
        rig_start(&rig, &terms, 1);
    }
    assert_sent(&rig, terms.queues ? ROUND_QUEUE : ROUND_ACQUIRE);
    for (const struct row *row = run->rows; row->event != END; row++) {
        enum lease_state before = rig.lease.state;
        uint64_t wake_at = rig.lease.wake_at;
        row_number++;
        memset(&rig.update, 0, sizeof(rig.update)); /* rows without an event have no effects */
        happen(&rig, row);
        expect_state(&rig, row->state != 0 ? row->state : before);
        expect_update(&rig.update, row);
        expect_time(&rig, row, wake_at);
        expect_values(&rig, row);
    }
    run = NULL;
}

/* Names the row at which a run stopped. */
static int name_row(void **state) {
    (void)state;
    if (run != NULL) {
        print_error("in row %zu (%s) of \"%s\"\n", row_number,
                    row_number > 0 ? event_names[run->rows[row_number - 1].event] : "the start",
                    run->name);
    }
    return 0;
}

void run_make_tests(struct CMUnitTest *tests, const struct run *runs, size_t count,
                    const struct lease_terms *base) {
    base_terms = base;
    for (size_t i = 0; i < count; i++) {
        tests[i] = (struct CMUnitTest){.name = runs[i].name,
                                       .test_func = go_through,
                                       .teardown_func = name_row,
                                       .initial_state = (void *)(uintptr_t)&runs[i]};
    }
}
