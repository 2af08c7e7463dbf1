/* The invariants of the profile "load". They ask the library's inside for nothing. */
#ifndef REDLOCK_SIM_CHECK_LOAD_H
#define REDLOCK_SIM_CHECK_LOAD_H

#include "load.h"

/* ---- told by the simulated outside, by way of check.h ---- */

void check_load_token(struct load_world *load, char text[41]);
void check_load_sent(struct load_world *load, const struct link *link, const char *data,
                     size_t length);
struct effect *check_load_effects(struct load_world *load, const struct link *link,
                                  const struct words *words, unsigned *count);
void check_load_arrived(struct load_world *load, const struct link *link,
                        const struct message *message);

/* After each occurrence of a crowd's process. */
void check_load_process(struct event_base *process, bool was_disturbed);

/* ---- told by the application ---- */

/* Its timer is run, and was due then. */
void check_load_tick(const struct crowd *crowd, uint64_t due);
void check_load_lost(const struct crowd_lock *lock, redlock_status status);
/* A request has ended so. */
void check_load_status(const struct crowd *crowd, const redlock_lock *lock, redlock_status status);
/* on_closed: nothing is left at a server that was there throughout. */
void check_load_closed(const struct crowd *crowd);

/* Renewals are thrown together now, and have so long to spread again. */
void check_load_disturbed(struct load_world *load, struct crowd *crowd, uint64_t until);

#endif
