/*
 * One client of a crowd, and its requests. Each function but crowd_member_wait begins something
 * that the part waits for: it calls crowd_part_expect, and crowd_part_answered follows. A failure
 * ends the part by crowd_part_fail, except in a cycle, where it is counted.
 */
#ifndef BENCH_CROWD_MEMBER_H
#define BENCH_CROWD_MEMBER_H

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct crowd_board;
struct crowd_part;

struct crowd_member {
    struct crowd_part *part;
    struct crowd_board *board;
    redlock_client *client; /* NULL: not created yet */
    const char *own_key;
    const char *guarded_key; /* the key for which it waits */
    uint64_t ttl_ms;
    redlock_lock *lock; /* while it waits or holds */
    bool in_cycle;
};

/* The functions of the part for its members. */
void crowd_part_expect(struct crowd_part *part);
void crowd_part_answered(struct crowd_part *part);
void crowd_part_fail(struct crowd_part *part, const char *error);
void crowd_part_report(const struct crowd_part *part, const char *error); /* counts an error */

/* Acquires a lock and holds it with the watchdog; releases it, unless it is lost. */
void crowd_member_hold(struct crowd_member *member);
void crowd_member_let_go(struct crowd_member *member);

/* Begins to wait, which no answer follows, because the guard has the key; ends to wait. */
void crowd_member_wait(struct crowd_member *member);
void crowd_member_cancel(struct crowd_member *member);

/* Acquires and releases a lock, and counts the cycle. Skips it while the last one is under way. */
void crowd_member_cycle(struct crowd_member *member);

#endif
