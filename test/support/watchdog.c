#include "watchdog.h"

#include "clocks.h"

redlock_lock *hold_renewed(struct fixture *f, redlock_client *client, const char *key,
                           uint64_t ttl_ms, struct loss **loss) {
    redlock_request request = request_for(key, ttl_ms);

    request.watchdog = true;
    *loss = watch_loss(f, &request);
    return hold_for(f, client, &request);
}

void pass_renewal(struct fixture *f, const redlock_lock *lock, uint64_t ttl_ms) {
    pass_time(ttl_ms / 3);
    wait_valid(f, lock, ttl_ms / 6 * 5);
}

static bool is_lost(void *arg) {
    return ((const struct loss *)arg)->count > 0;
}

redlock_status pass_until_lost(struct fixture *f, redlock_client *client, uint32_t silent,
                               uint64_t step_ms, struct loss *loss) {
    pass_until(f, client, silent, step_ms, is_lost, loss, "the lock is lost");
    return loss->status;
}
