#include "threads/mt.h"

#include "base/error.h"
#include "io/fork.h"

#include <stdlib.h>

void mt_drop(struct redlock_mt *mt) {
    if (atomic_fetch_sub_explicit(&mt->users, 1, memory_order_acq_rel) == 1) {
        free(mt);
    }
}

bool mt_is_inherited(const struct redlock_mt *mt) {
    return mt->generation != fork_generation();
}

redlock_status mt_check(const struct redlock_mt *mt, redlock_error *error) {
    if (mt == NULL) {
        return error_set(error, REDLOCK_EINVAL, "mt: must not be NULL");
    }
    return mt_is_inherited(mt)
               ? error_set(error, REDLOCK_EINVAL,
                           "this process is a child (fork) of the one that made the client")
               : REDLOCK_OK;
}

redlock_status mt_check_blocking(const struct redlock_mt *mt, redlock_error *error) {
    redlock_status status = mt_check(mt, error);
    return status == REDLOCK_OK && worker_is_current()
               ? error_set(error, REDLOCK_EINVAL,
                           "a call that waits inside a callback would stop the library's thread")
               : status;
}

redlock_status mt_refuse_closed(redlock_error *error) {
    return error_set(error, REDLOCK_ECLOSED, "the client is closed");
}
