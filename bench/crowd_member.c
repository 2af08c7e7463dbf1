#include "crowd_member.h"

#include "crowd_part.h"

/* Returns a request that does not queue, but tries again: a busy machine misses timeouts. */
static redlock_request plain_request(const struct crowd_member *member) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = member->own_key;
    request.ttl_ms = member->ttl_ms;
    request.retries = CROWD_RETRIES;
    return request;
}

/* ------------------------------------------------------------------------------------- holding */

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct crowd_member *member = arg;

    if (status != REDLOCK_ECLOSED) {
        member->board->lost++;
        member->lock = NULL;
        redlock_release(lock, NULL, NULL);
    }
}

static void on_held(redlock_lock *lock, redlock_status status, void *arg) {
    struct crowd_member *member = arg;

    if (status == REDLOCK_OK) {
        member->lock = lock;
    } else {
        crowd_part_fail(member->part, redlock_explain(lock));
    }
    crowd_part_answered(member->part);
}

void crowd_member_hold(struct crowd_member *member) {
    redlock_request request = plain_request(member);

    request.watchdog = true;
    request.on_lost = on_lost;
    request.on_lost_arg = member;
    crowd_part_expect(member->part);
    if (redlock_acquire(member->client, &request, on_held, member, NULL) != REDLOCK_OK) {
        crowd_part_fail(member->part, redlock_client_error(member->client));
    }
}

/* The lock may have been lost: the release does not count. */
static void on_let_go(redlock_lock *lock, redlock_status status, void *arg) {
    struct crowd_member *member = arg;

    (void)lock;
    (void)status;
    crowd_part_answered(member->part);
}

void crowd_member_let_go(struct crowd_member *member) {
    redlock_lock *lock = member->lock;

    if (lock == NULL) {
        return;
    }
    member->lock = NULL;
    crowd_part_expect(member->part);
    if (redlock_release(lock, on_let_go, member) != REDLOCK_OK) {
        crowd_part_fail(member->part, redlock_client_error(member->client));
    }
}

/* ------------------------------------------------------------------------------------- waiting */

static void on_waited(redlock_lock *lock, redlock_status status, void *arg) {
    struct crowd_member *member = arg;

    member->lock = NULL;
    if (status == REDLOCK_OK) {
        crowd_part_fail(member->part, "a key that another client holds was free");
    } else if (status != REDLOCK_ECANCELED) {
        crowd_part_fail(member->part, redlock_explain(lock));
    }
    crowd_part_answered(member->part);
}

void crowd_member_wait(struct crowd_member *member) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = member->guarded_key;
    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = true;
    if (redlock_acquire(member->client, &request, on_waited, member, &member->lock) != REDLOCK_OK) {
        crowd_part_fail(member->part, redlock_client_error(member->client));
    }
}

void crowd_member_cancel(struct crowd_member *member) {
    crowd_part_expect(member->part);
    redlock_cancel(member->lock);
}

/* ------------------------------------------------------------------------------------- cycles */

static void end_cycle(struct crowd_member *member, const char *error) {
    member->in_cycle = false;
    if (error == NULL) {
        member->board->cycles++;
    } else {
        crowd_part_report(member->part, error);
    }
    crowd_part_answered(member->part);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    end_cycle(arg, status == REDLOCK_OK ? NULL : redlock_explain(lock));
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct crowd_member *member = arg;

    if (status != REDLOCK_OK) {
        end_cycle(member, redlock_explain(lock));
    } else if (redlock_release(lock, on_released, member) != REDLOCK_OK) {
        end_cycle(member, redlock_client_error(member->client));
    }
}

void crowd_member_cycle(struct crowd_member *member) {
    redlock_request request = plain_request(member);

    /* A slow machine makes fewer cycles: that is no error. */
    if (member->in_cycle) {
        member->board->skipped++;
        return;
    }
    member->in_cycle = true;
    crowd_part_expect(member->part);
    if (redlock_acquire(member->client, &request, on_acquired, member, NULL) != REDLOCK_OK) {
        end_cycle(member, redlock_client_error(member->client));
    }
}
