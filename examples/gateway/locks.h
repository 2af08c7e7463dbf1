/* Requests about locks that are held, and about keys. */
#ifndef LOCKS_H
#define LOCKS_H

struct exchange;

/* Shortest TTL that may be asked for. */
#define LOCKS_TTL_MIN_MS 100

extern const char *const lock_modes[]; /* by redlock_mode; the list ends with NULL */

/* POST /v1/locks/{key}/{id}/renew: sets the time that is left. */
void renew_serve(const struct exchange *exchange);

/* DELETE /v1/locks/{key}/{id}: releases. */
void release_serve(const struct exchange *exchange);

/* GET /v1/locks/{key}: tells who holds a key, and who waits. */
void inspect_serve(const struct exchange *exchange);

#endif
