/*
 * A client's log for the actions (actions_log.h). The library's functions that send a command, take
 * a push and renew are wrapped by the linker; the client reports the rest itself.
 */
#ifndef REDLOCK_CHAOS_ACTIONS_CLIENT_H
#define REDLOCK_CHAOS_ACTIONS_CLIENT_H

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Begins to log to a descriptor; negative: nothing is logged. `is_held` returns whether the
 * application holds a lock that has the token.
 */
void actions_client_begin(int log, bool (*is_held)(const char *token, void *arg), void *arg);

bool actions_client_has_token(const redlock_lock *lock, const char *token);

/* Record that a lock is valid, at an instant until another, and that it is about to be released. */
void actions_client_hold(const redlock_lock *lock, uint64_t at_ns, uint64_t until_ns);
void actions_client_part(const redlock_lock *lock);

#endif
