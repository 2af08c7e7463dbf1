/* The beginning and the end of a redlock_mt. */
#include "base/error.h"
#include "core/options.h"
#include "io/fork.h"
#include "threads/mt.h"
#include "threads/mt_lock.h"

#include <stdlib.h>

static void on_closed(void *arg) {
    mt_lock_forget_all(arg);
}

redlock_status redlock_mt_create(const redlock_options *options, redlock_mt **mt,
                                 redlock_error *error) {
    if (mt == NULL) {
        return error_set(error, REDLOCK_EINVAL, "mt: must not be NULL");
    }
    *mt = NULL;
    if (options == NULL) {
        return error_set(error, REDLOCK_EINVAL, "options must not be NULL");
    }
    redlock_mt *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    LIST_INIT(&made->locks);
    atomic_init(&made->users, 1);
    redlock_status status = options_read(options, &made->options, error);
    if (status == REDLOCK_OK) {
        status = worker_start(&made->worker, options, &mt_lock_mirror, on_closed, made, error);
    }
    if (status != REDLOCK_OK) {
        free(made);
        return status;
    }
    made->generation = fork_generation();
    *mt = made;
    return REDLOCK_OK;
}

redlock_status redlock_mt_close(redlock_mt *mt, uint64_t *unreleased) {
    redlock_status status = mt_check_blocking(mt, NULL);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (atomic_exchange(&mt->is_closing, true)) {
        latch_wait(&mt->closed);
    } else {
        worker_end(&mt->worker);
        latch_open(&mt->closed);
    }
    if (unreleased != NULL) {
        *unreleased = mt->worker.unreleased;
    }
    return REDLOCK_OK;
}

void redlock_mt_free(redlock_mt *mt) {
    if (redlock_mt_close(mt, NULL) == REDLOCK_OK) {
        mt_drop(mt);
    }
}
