/* Requests about held locks and about keys. */
#ifndef LOCKS_H
#define LOCKS_H

struct exchange;

/* Minimum TTL of a request. */
#define LOCKS_TTL_MIN_MS 100

extern const char *const lock_modes[]; /* by redlock_mode; the list ends with NULL */

/* POST /v1/locks/{key}/{id}/renew: sets the remaining TTL. */
void renew_serve(const struct exchange *exchange);

/* DELETE /v1/locks/{key}/{id}: releases the lock. */
void release_serve(const struct exchange *exchange);

/* GET /v1/locks/{key}: reports the holders of a key and its waiters. */
void inspect_serve(const struct exchange *exchange);

#endif
