/* The invariants of the profile "load", checked without looking into the library. */
#ifndef REDLOCK_SIM_CHECK_LOAD_H
#define REDLOCK_SIM_CHECK_LOAD_H

#include "load.h"

/* ---- reported by the simulated outside, through check.h ---- */

void check_load_token(struct load_world *load, char text[41]);
void check_load_sent(struct load_world *load, const struct link *link, const char *data,
                     size_t length);
struct effect *check_load_effects(struct load_world *load, const struct link *link,
                                  const struct words *words, unsigned *count);
void check_load_arrived(struct load_world *load, const struct link *link,
                        const struct message *message);

/* Checks after each occurrence of a crowd's process. */
void check_load_process(struct event_base *process, bool was_disturbed);

/* ---- reported by the application ---- */

/* Checks the crowd's timer, which was due at `due` and fires now. */
void check_load_tick(const struct crowd *crowd, uint64_t due);
void check_load_lost(const struct crowd_lock *lock, redlock_status status);
/* Checks the status of a request that has ended. */
void check_load_status(const struct crowd *crowd, const redlock_lock *lock, redlock_status status);
/* Checks of a request of the first locks that has ended when its latest try began. */
void check_load_began(const struct crowd_lock *lock, const redlock_lock *handle);
/* Checks that such a request failed only because its time was over before its first try. */
void check_load_failed(const struct crowd_lock *lock, const redlock_lock *handle);
/* Checks, in on_closed, that no key is left at a server that was up throughout. */
void check_load_closed(const struct crowd *crowd);

/* Records that renewals bunch up now, and must be spread again from `until` on. */
void check_load_disturbed(struct load_world *load, struct crowd *crowd, uint64_t until);

#endif
