/* The calls on a redlock_mt that concern no lock. */
#include "base/error.h"
#include "core/options.h"
#include "threads/listener.h"
#include "threads/mt.h"

#include <stdlib.h>
#include <string.h>

/* ---- inspections ---- */

/* On the stack of a thread that waits for it, or of malloc with a copy of the key. */
struct inspection {
    struct task task; /* first */
    const char *key;
    size_t key_length;
    redlock_inspect_cb *on_view;
    void *arg;
    struct answer *answer; /* NULL: nobody waits */
    char copy[];
};

static void end_inspection(struct inspection *inspection, redlock_status status, const char *why) {
    if (inspection->answer != NULL) {
        answer_give(inspection->answer, status, why);
    } else {
        free(inspection);
    }
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct inspection *inspection = arg;
    inspection->on_view(status, view, inspection->arg);
    end_inspection(inspection, status, redlock_strerror(status));
}

static void begin_inspection(struct task *task, redlock_client *client) {
    struct inspection *inspection = (struct inspection *)(void *)task;
    redlock_status status = REDLOCK_ECLOSED;
    const char *why = redlock_strerror(status);
    if (client != NULL) {
        status =
            redlock_inspect(client, inspection->key, inspection->key_length, on_view, inspection);
        why = redlock_client_error(client);
    }
    if (status == REDLOCK_OK) {
        return;
    }
    if (inspection->answer == NULL) { /* otherwise the refusal is the answer */
        const redlock_view empty = {.owner = ""};
        inspection->on_view(status, &empty, inspection->arg);
    }
    end_inspection(inspection, status, why);
}

/* Checks the arguments of an inspection, and sets *length, if it is 0. */
static redlock_status check_inspection(const char *key, size_t *length, redlock_inspect_cb *call,
                                       redlock_error *error) {
    return call == NULL ? error_set(error, REDLOCK_EINVAL, "on_view: must not be NULL")
                        : options_check_key("key", key, length, error);
}

redlock_status redlock_mt_inspect(redlock_mt *mt, const char *key, size_t key_length,
                                  redlock_inspect_cb *call, void *arg, redlock_error *error) {
    redlock_status status = mt_check_blocking(mt, error);
    if (status != REDLOCK_OK ||
        (status = check_inspection(key, &key_length, call, error)) != REDLOCK_OK) {
        return status;
    }
    struct answer answer = {.error = error};
    struct inspection inspection = {.task = {.begin = begin_inspection},
                                    .key = key,
                                    .key_length = key_length,
                                    .on_view = call,
                                    .arg = arg,
                                    .answer = &answer};
    return worker_post(&mt->worker, &inspection.task) ? answer_await(&answer)
                                                      : mt_refuse_closed(error);
}

redlock_status redlock_mt_begin_inspect(redlock_mt *mt, const char *key, size_t key_length,
                                        redlock_inspect_cb *call, void *arg, redlock_error *error) {
    redlock_status status = mt_check(mt, error);
    if (status != REDLOCK_OK ||
        (status = check_inspection(key, &key_length, call, error)) != REDLOCK_OK) {
        return status;
    }
    struct inspection *inspection = malloc(sizeof(*inspection) + key_length);
    if (inspection == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    *inspection = (struct inspection){.task = {.begin = begin_inspection},
                                      .key = inspection->copy,
                                      .key_length = key_length,
                                      .on_view = call,
                                      .arg = arg};
    memcpy(inspection->copy, key, key_length);
    if (!worker_post(&mt->worker, &inspection->task)) {
        free(inspection);
        return mt_refuse_closed(error);
    }
    return REDLOCK_OK;
}

/* ---- work on the client ---- */

/* On the stack of the thread that waits for it. */
struct job {
    struct task task; /* first */
    redlock_mt_work_cb *work;
    void *arg;
    struct answer answer;
};

static void begin_job(struct task *task, redlock_client *client) {
    struct job *job = (struct job *)(void *)task;
    if (client != NULL) {
        job->work(client, job->arg);
        answer_give(&job->answer, REDLOCK_OK, "");
    } else {
        answer_give(&job->answer, REDLOCK_ECLOSED, redlock_strerror(REDLOCK_ECLOSED));
    }
}

redlock_status redlock_mt_run(redlock_mt *mt, redlock_mt_work_cb *work, void *arg,
                              redlock_error *error) {
    redlock_status status = mt_check_blocking(mt, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (work == NULL) {
        return error_set(error, REDLOCK_EINVAL, "work: must not be NULL");
    }
    struct job job = {
        .task = {.begin = begin_job}, .work = work, .arg = arg, .answer = {.error = error}};
    return worker_post(&mt->worker, &job.task) ? answer_await(&job.answer)
                                               : mt_refuse_closed(error);
}
