#include "report.h"

#include "duration.h"
#include "event.h"
#include "talk.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time before the first progress line, and between two lines. */
#define PROGRESS_MS 1000

void report_init(struct report *report, const struct job *job) {
    *report = (struct report){.job = job};
}

/* ---------------------------------------------------------------------------------- the waiting */

/*
 * Returns whether the terminal belongs to the job, or to no job. For a job in the background it
 * belongs to the shell. The job is the front's process group; this process has its own.
 */
static bool has_terminal(void) {
    pid_t group = tcgetpgrp(STDERR_FILENO);

    return isatty(STDERR_FILENO) && (group < 0 || group == getpgid(getppid()));
}

static void erase_line(struct report *report) {
    if (report->has_line && has_terminal()) {
        fputs("\r\033[K", stderr);
    }
    report->has_line = false;
}

/* Returns the position of this process in the queue, from 1; 0: not known. */
static size_t own_position(const struct report *report, const redlock_view *view) {
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        if (strcmp(view->queue_owners[i], report->job->owner) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct report *report = arg;
    size_t position = own_position(report, view);
    char waited[DURATION_TEXT];

    report->is_asking = false;
    if (report->client == NULL || status == REDLOCK_ECLOSED || !has_terminal()) {
        return;
    }
    erase_line(report);
    fprintf(stderr, "waiting for %s, %s", job_title(report->job),
            duration_write(waited, talk_now_ms() - report->began_ms));
    if (view->readers > 0) {
        fprintf(stderr, ", shared by %" PRIu32, view->readers);
    } else if (view->held) {
        fprintf(stderr, ", held by %s", view->owner[0] != '\0' ? view->owner : "another");
    }
    if (position > 0) {
        fprintf(stderr, ", position %zu of %" PRIu32 " in the queue", position, view->queue_length);
    }
    report->has_line = true;
    fflush(stderr);
}

void report_begin_waiting(struct report *report, redlock_client *client) {
    report->client = client;
    report->began_ms = report->reported_ms = talk_now_ms();
}

void report_waiting(struct report *report) {
    uint64_t now = talk_now_ms();

    if (now - report->reported_ms < PROGRESS_MS || report->job->is_json || report->is_asking ||
        !has_terminal()) {
        return;
    }
    report->reported_ms = now;
    report->is_asking =
        redlock_inspect(report->client, report->job->keys[0], 0, on_view, report) == REDLOCK_OK;
}

void report_end_waiting(struct report *report) {
    erase_line(report);
    report->client = NULL;
}

void report_leave_waiting(struct report *report) {
    report->has_line = false;
    report->client = NULL;
}

/* ----------------------------------------------------------------------------------- the result */

/*
 * Returns whether the node refuses. A server that gets too much before a login closes the
 * connection, so an earlier refusal holds until the node is trusted.
 */
static bool is_refusing(bool was_refusing, const redlock_node_info *info, const char *detail) {
    if (nodes_is_refusal(detail) || nodes_is_refusal(info->reason) ||
        nodes_is_refusal(info->distrust)) {
        return true;
    }
    return was_refusing && !(info->connected && info->trusted);
}

bool report_is_hopeless(struct report *report, const redlock_client *client,
                        const redlock_lock *lock) {
    redlock_node_report reports[REDLOCK_MAX_NODES];
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_report(lock, reports, REDLOCK_MAX_NODES);
    size_t refusing = 0;

    redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    for (size_t i = 0; i < count; i++) {
        uint32_t bit = UINT32_C(1) << i;

        if (is_refusing(report->refusing & bit, &infos[i], reports[i].detail)) {
            report->refusing |= bit;
            refusing++;
        } else {
            report->refusing &= ~bit;
        }
    }
    return refusing > count - nodes_quorum(&report->job->nodes);
}

static bool has_one_server_twice(const redlock_client *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);

    for (size_t i = 0; i < count; i++) {
        if (strstr(infos[i].distrust, "same server") != NULL) {
            return true;
        }
    }
    return false;
}

/*
 * Returns advice about nodes that are not trusted; NULL: all nodes of the last round were. Problems
 * that waiting does not solve come first.
 */
static const char *advice_on_trust(const redlock_client *client, const redlock_lock *lock) {
    redlock_node_report reports[REDLOCK_MAX_NODES];
    size_t count = redlock_report(lock, reports, REDLOCK_MAX_NODES);

    if (has_one_server_twice(client)) {
        return "two of the nodes are one server: name each server once";
    }
    for (size_t i = 0; i < count; i++) {
        if (reports[i].vote == REDLOCK_VOTE_UNTRUSTED) {
            return reports[i].ttl_ms == 0
                       ? "redlock doctor explains why nodes are not trusted"
                       : "masters that are new grant nothing at first: use a --wait above "
                         "--max-ttl";
        }
    }
    return NULL;
}

static int code_for(const struct report *report, redlock_status status) {
    if (status == REDLOCK_EHELD) {
        return report->job->busy_code;
    }
    if (status == REDLOCK_EACCESS) {
        return TOOL_NOT_PERMITTED;
    }
    return status == REDLOCK_ENOMEM ? TOOL_SYSTEM : TOOL_NO_QUORUM;
}

static const char *advice_for(int code, const struct report *report, const redlock_client *client,
                              const redlock_lock *lock) {
    const char *on_trust = advice_on_trust(client, lock);

    if (code == TOOL_NOT_PERMITTED) {
        return "check login and database in the nodes' URIs, and the rights of its user";
    }
    if (code == TOOL_NO_QUORUM && on_trust != NULL) {
        return on_trust;
    }
    if (code == TOOL_NO_QUORUM) {
        return "check the nodes' addresses, and that they run";
    }
    return report->job->wait_ms == 0 ? "use --wait to wait for it" : "a longer --wait may help";
}

int report_not_acquired(struct report *report, const redlock_client *client,
                        const redlock_lock *lock, redlock_status status) {
    const char *why = redlock_explain(lock);
    bool is_hopeless = report_is_hopeless(report, client, lock);
    int code = is_hopeless ? TOOL_NOT_PERMITTED : code_for(report, status);

    if (report->job->is_json) {
        struct event event;

        event_begin(&event, "not acquired");
        json_text(&event.json, "why", why);
        event_end(&event);
    } else {
        tool_say("%s: %s", job_title(report->job), why);
        tool_say("%s", advice_for(code, report, client, lock));
    }
    return code;
}

void report_acquired(struct report *report, const redlock_lock *lock) {
    size_t length;
    const char *key = redlock_key(lock, &length);

    if (report->job->is_json) {
        struct event event;

        event_begin(&event, "acquired");
        json_bytes(&event.json, "key", key, length);
        json_number(&event.json, "fence", (int64_t)redlock_fence(lock));
        json_number(&event.json, "valid_until_ms", (int64_t)report->valid_until_ms);
        event_end(&event);
    }
}

void report_lost(struct report *report, const char *why) {
    static const char *const deeds[] = {[JOB_TERM] = "the command is ended",
                                        [JOB_KILL] = "the command is killed",
                                        [JOB_WARN] = "the command goes on without it"};

    if (report->job->is_json) {
        struct event event;

        event_begin(&event, "lost");
        json_text(&event.json, "why", why);
        json_number(&event.json, "valid_until_ms", (int64_t)report->valid_until_ms);
        event_end(&event);
    } else {
        tool_say("%s: the lock is lost, %s: %s", job_title(report->job),
                 deeds[report->job->on_lost], why);
    }
}

void report_killed(struct report *report, const char *why, bool was_killed) {
    if (report->job->is_json) {
        struct event event;

        event_begin(&event, "killed");
        json_text(&event.json, "why", why);
        event_end(&event);
    } else {
        tool_say("%s: %s; the command %s", job_title(report->job), why,
                 was_killed ? "was killed" : "could not be killed, and has ended by itself");
    }
}

void report_gone(struct report *report) {
    if (report->job->is_json) {
        struct event event;

        event_begin(&event, "gone");
        json_number(&event.json, "valid_until_ms", (int64_t)report->valid_until_ms);
        event_end(&event);
    }
}

void report_ended(struct report *report, int code) {
    if (report->job->is_json) {
        struct event event;

        event_begin(&event, "ended");
        json_number(&event.json, "code", code);
        event_end(&event);
    }
}
