#include "news.h"

#include "duration.h"
#include "event.h"
#include "talk.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time of silence before the first progress line, and between two. */
#define PROGRESS_MS 1000

void news_init(struct news *news, const struct job *job) {
    *news = (struct news){.job = job};
}

/* ---------------------------------------------------------------------------------- the waiting */

/*
 * Returns whether the terminal is the job's, or that of no job. In the background, it is the
 * shell's. The job is the front's group; this process has a group of its own.
 */
static bool has_terminal(void) {
    pid_t group = tcgetpgrp(STDERR_FILENO);

    return isatty(STDERR_FILENO) && (group < 0 || group == getpgid(getppid()));
}

static void erase_line(struct news *news) {
    if (news->has_line && has_terminal()) {
        fputs("\r\033[K", stderr);
    }
    news->has_line = false;
}

/* Returns the place of this process in line, from 1; 0 when it is not known. */
static size_t own_place(const struct news *news, const redlock_view *view) {
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        if (strcmp(view->queue_owners[i], news->job->owner) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct news *news = arg;
    size_t place = own_place(news, view);
    char waited[DURATION_TEXT];

    news->is_asking = false;
    if (news->client == NULL || status == REDLOCK_ECLOSED || !has_terminal()) {
        return;
    }
    erase_line(news);
    fprintf(stderr, "waiting for %s, %s", job_title(news->job),
            duration_write(waited, talk_now_ms() - news->began_ms));
    if (view->readers > 0) {
        fprintf(stderr, ", shared by %" PRIu32, view->readers);
    } else if (view->held) {
        fprintf(stderr, ", held by %s", view->owner[0] != '\0' ? view->owner : "another");
    }
    if (place > 0) {
        fprintf(stderr, ", place %zu of %" PRIu32 " in line", place, view->queue_length);
    }
    news->has_line = true;
    fflush(stderr);
}

void news_begin_waiting(struct news *news, redlock_client *client) {
    news->client = client;
    news->began_ms = news->told_ms = talk_now_ms();
}

void news_waiting(struct news *news) {
    uint64_t now = talk_now_ms();

    if (now - news->told_ms < PROGRESS_MS || news->job->is_json || news->is_asking ||
        !has_terminal()) {
        return;
    }
    news->told_ms = now;
    news->is_asking =
        redlock_inspect(news->client, news->job->keys[0], 0, on_view, news) == REDLOCK_OK;
}

void news_end_waiting(struct news *news) {
    erase_line(news);
    news->client = NULL;
}

void news_leave_waiting(struct news *news) {
    news->has_line = false;
    news->client = NULL;
}

/* ----------------------------------------------------------------------------------- the result */

/*
 * Returns whether the node refuses. A server that was sent too much before a login closes the
 * connection, so that an earlier refusal holds until the node is trusted.
 */
static bool is_refusing(bool was_refusing, const redlock_node_info *info, const char *detail) {
    if (nodes_is_refusal(detail) || nodes_is_refusal(info->reason) ||
        nodes_is_refusal(info->distrust)) {
        return true;
    }
    return was_refusing && !(info->connected && info->trusted);
}

bool news_is_hopeless(struct news *news, const redlock_client *client, const redlock_lock *lock) {
    redlock_node_report reports[REDLOCK_MAX_NODES];
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_report(lock, reports, REDLOCK_MAX_NODES);
    size_t refusing = 0;

    redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    for (size_t i = 0; i < count; i++) {
        uint32_t bit = UINT32_C(1) << i;

        if (is_refusing(news->refusing & bit, &infos[i], reports[i].detail)) {
            news->refusing |= bit;
            refusing++;
        } else {
            news->refusing &= ~bit;
        }
    }
    return refusing > count - nodes_quorum(&news->job->nodes);
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
 * Returns what to do about nodes that are not trusted; NULL: those of the last round were. First
 * what waiting does not mend.
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
                       ? "redlock doctor tells more of nodes that are not trusted"
                       : "masters that are new grant nothing at first: use a --wait above "
                         "--max-ttl";
        }
    }
    return NULL;
}

static int code_for(const struct news *news, redlock_status status) {
    if (status == REDLOCK_EHELD) {
        return news->job->busy_code;
    }
    if (status == REDLOCK_EACCESS) {
        return TOOL_NOT_PERMITTED;
    }
    return status == REDLOCK_ENOMEM ? TOOL_SYSTEM : TOOL_NO_QUORUM;
}

static const char *advice_for(int code, const struct news *news, const redlock_client *client,
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
    return news->job->wait_ms == 0 ? "use --wait to wait for it" : "a longer --wait may help";
}

int news_not_acquired(struct news *news, const redlock_client *client, const redlock_lock *lock,
                      redlock_status status) {
    const char *why = redlock_explain(lock);
    bool is_hopeless = news_is_hopeless(news, client, lock);
    int code = is_hopeless ? TOOL_NOT_PERMITTED : code_for(news, status);

    if (news->job->is_json) {
        struct event event;

        event_begin(&event, "not acquired");
        json_text(&event.json, "why", why);
        event_end(&event);
    } else {
        tool_say("%s: %s", job_title(news->job), why);
        tool_say("%s", advice_for(code, news, client, lock));
    }
    return code;
}

void news_acquired(struct news *news, const redlock_lock *lock) {
    size_t length;
    const char *key = redlock_key(lock, &length);

    if (news->job->is_json) {
        struct event event;

        event_begin(&event, "acquired");
        json_bytes(&event.json, "key", key, length);
        json_number(&event.json, "fence", (int64_t)redlock_fence(lock));
        json_number(&event.json, "valid_until_ms", (int64_t)news->valid_until_ms);
        event_end(&event);
    }
}

void news_lost(struct news *news, const char *why) {
    static const char *const deeds[] = {[JOB_TERM] = "the command is ended",
                                        [JOB_KILL] = "the command is killed",
                                        [JOB_WARN] = "the command goes on without it"};

    if (news->job->is_json) {
        struct event event;

        event_begin(&event, "lost");
        json_text(&event.json, "why", why);
        json_number(&event.json, "valid_until_ms", (int64_t)news->valid_until_ms);
        event_end(&event);
    } else {
        tool_say("%s: the lock is lost, %s: %s", job_title(news->job), deeds[news->job->on_lost],
                 why);
    }
}

void news_killed(struct news *news, const char *why, bool was_killed) {
    if (news->job->is_json) {
        struct event event;

        event_begin(&event, "killed");
        json_text(&event.json, "why", why);
        event_end(&event);
    } else {
        tool_say("%s: %s; the command %s", job_title(news->job), why,
                 was_killed ? "was killed" : "could not be killed, and has ended by itself");
    }
}

void news_gone(struct news *news) {
    if (news->job->is_json) {
        struct event event;

        event_begin(&event, "gone");
        json_number(&event.json, "valid_until_ms", (int64_t)news->valid_until_ms);
        event_end(&event);
    }
}

void news_ended(struct news *news, int code) {
    if (news->job->is_json) {
        struct event event;

        event_begin(&event, "ended");
        json_number(&event.json, "code", code);
        event_end(&event);
    }
}
