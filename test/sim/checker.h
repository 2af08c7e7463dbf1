/* Declarations shared by the parts of the checker. All other files include check.h. */
#ifndef REDLOCK_SIM_CHECKER_H
#define REDLOCK_SIM_CHECKER_H

#include "check.h"

struct form;

static inline struct checker *checker_of(const struct world *world) {
    return world->checker;
}

/* Returns the number of a token that was given out; NO_TOKEN for any other text. */
uint32_t check_token_of(const struct checker *checker, const char *text, size_t length);

/* Returns the number of the token of a lock's latest try; NO_TOKEN if there was none. */
uint32_t check_token_of_lock(const struct checker *checker, const redlock_lock *lock);

/* Returns the key's number; key_count for any other name. */
unsigned check_key_of(const struct checker *checker, const struct word *name);

/* Returns the hold with this token; NULL when there is none. */
struct hold *check_hold_of(const struct checker *checker, uint32_t token);

/*
 * Returns the end of the validity that a lock reservations, by its process's clock; 0 when it
 * reservations none.
 */
uint64_t check_reported_end(const redlock_lock *lock);

/*
 * Returns the true time until which the server certainly keeps the key for the token; for a reader,
 * as far as the key there tells now.
 */
uint64_t check_kept_until(const struct checker *checker, unsigned server, uint32_t number);

/*
 * Returns until when, by the server's clock, a reader's token is listed and the key shared; 0 when
 * it is not.
 */
int64_t check_listed(const struct checker *checker, struct master *master, uint32_t number);

/*
 * Returns the list of a key's readers, or the intent of a waiting writer, at a server; NULL when
 * there is none.
 */
const struct store_key *check_beside(const struct checker *checker, struct master *master,
                                     unsigned key, const char *suffix);

/* Returns the number of listed readers of a key whose shares have not lapsed. */
unsigned check_alive(const struct checker *checker, struct master *master, unsigned key);

/* Returns whether readers hold the key. */
bool check_is_shared(const struct store_key *key);

/* Returns the least value among the keys of a token: the value that holds for all of them. */
uint64_t check_least(const uint64_t values[KEYS_MAX], uint32_t keys);

/* Checks a script call that has run, before its effects are noted with the tokens. */
void check_shared_call(struct checker *checker, struct master *master, const struct words *words,
                       const struct form *form);

/*
 * Records the effect of a command with the token on the key `name`. Returns whether the token has
 * the key now. `is_late`: the connection on which the command was sent has ended.
 */
bool check_record_effect(struct checker *checker, struct master *master, const struct word *name,
                         uint32_t number, bool is_late, struct effect *effect);

/* Records the keys that a command has passed on, once those that it has freed are noted. */
void check_record_passes(struct checker *checker, struct master *master);

/* Checks all readers: one command on the list may concern all of them. */
void check_readers(struct checker *checker);

/* Checks that a token's key has an expiry, and lives no longer than its application asked for. */
void check_ttl(struct checker *checker, const struct master *master, uint32_t number,
               int64_t expires_ms);

/* Checks that a client has heard its channel, a probe, before it asks for an entry. */
void check_channel(struct checker *checker, const struct link *link, const struct word *channel);

/* Checks that all entries that a request asks for have one ticket. */
void check_ticket(struct checker *checker, uint32_t number, const struct word *text);

/* Checks that nobody who listens was before the token in line, which the server gave the key to. */
void check_turn(struct checker *checker, struct master *master, uint32_t number, unsigned key);

/* Checks that a server that gives entries has the flag that tells so; an eviction may take it. */
void check_flag(struct checker *checker, struct master *master, unsigned key);

/*
 * Checks that nobody who listens stands in the queue for a key that is free after its release,
 * which is not noted with the token yet.
 */
void check_freed(struct checker *checker, struct master *master, uint32_t number, unsigned key);

/* Records that a waiter has asked a server for its place in the queue for a key. */
void check_asks_again(struct checker *checker, struct master *master, uint32_t number,
                      unsigned key);

/*
 * Checks that a server keeps readers out for the first in the queue only while that one asks: it is
 * told to, and loses its entry behind four reservations.
 */
void check_kept_out(struct checker *checker, struct master *master, unsigned key);

/* Checks that no reader is first in the queue for a key that readers hold. */
void check_let_in(struct checker *checker, struct master *master, unsigned key);

/* Returns whether anybody who listens stands in the queue for a key that is not left to others. */
bool check_is_awaited(const struct checker *checker, struct master *master, unsigned key);
/*
 * Returns the connection on which the client of an entry, "<value> <channel> ...", is subscribed to
 * its channel, as far as the server knows; NULL when there is none.
 */
const struct link *check_listener_of(const struct checker *checker, const struct master *master,
                                     const struct member *entry);

/* Records that a server tells a waiter of a permit. */
struct push;
void check_permit_offered(struct checker *checker, const struct master *master,
                          const struct push *push);

/* Checks that a permit is not given to a token, of this value, before its turn in the line. */
void check_permit_turn(struct checker *checker, struct master *master, uint32_t number,
                       const char *value, bool is_in_queue);

/* Checks that somebody in the queue was told of a permit that a token had, if it is free now. */
void check_permit_freed(struct checker *checker, struct master *master, uint32_t number,
                        unsigned key);

/*
 * Checks that a waiter that has left stands in no line. With the ticket 1 it gives back a permit
 * that it was told of, and may stand in the queue all the same: its ask may have crossed the
 * message.
 */
void check_permit_left(struct checker *checker, struct master *master, const struct word *value,
                       const struct word *ticket);

/* Checks that the first in the queue who listens is told of a key that its release has left there.
 */
void check_announced(struct checker *checker, struct master *master, uint32_t number, unsigned key);

/* Returns whether the command has stopped at the bound of the entries that it may handle. */
bool check_is_cut_short(const struct checker *checker, const struct master *master);

/* Begins a command that may pass keys on. */
void check_passes_clear(struct passes *passes);

/* Checks that a waiter that has left stands in no queue. */
void check_left(struct checker *checker, struct master *master, const struct word *value,
                const struct word *name);

/* Has each place in a key's queue checked whose client listens, by its token's text. */
typedef void check_entry(const struct checker *checker, const struct master *master, unsigned key,
                         const char *text, size_t length);
void check_entries(const struct checker *checker, struct master *master, unsigned key,
                   check_entry *check);

/* Returns the most by which two clocks drift apart in a time. */
int64_t check_drifted(const struct checker *checker, uint64_t passed);

/* Records a beat, "the server's clock was at time_us": it was read after the process sent it. */
void check_beat(struct checker *checker, const struct event_base *process, unsigned server,
                uint64_t time_us, uint64_t sent_at);

/*
 * Returns the least by which a server's clock may be ahead of the process's at most, as far as
 * beats prove; INT64_MIN before the first one.
 */
int64_t check_proven_ahead(const struct checker *checker, const struct event_base *process,
                           unsigned server, uint64_t now);

/* Returns a number that stands for the name of a channel; never 0. */
uint32_t check_channel_mark(const char *name, size_t length);

/* Returns whether an entry was asked for under the token on a channel, by its mark. */
bool check_has_asked(const struct token *token, uint32_t mark);

/* Records that an entry is asked for on a channel. */
void check_asks_for_entry(struct checker *checker, uint32_t number, const struct word *channel);

/* Checks for how long a key is passed on. */
void check_reservation(struct checker *checker, const struct push *push);

/* Checks that a key that a token has released is not another's now that was not told so. */
void check_given(const struct checker *checker, struct master *master, uint32_t number,
                 unsigned key);

/* Checks that the waiter listens that a key was passed on to, and that has the key now. */
void check_heard_of(struct checker *checker, struct master *master, const struct pass *pass);

bool check_is_valid(const struct hold *hold);
bool check_is_listed(uint32_t list, unsigned server);
unsigned check_quorum_of(uint32_t list);

/* Records that the process has heard a beat that the server gave at `at`. */
void check_heard(struct event_base *process, unsigned server, uint64_t at);

/*
 * Returns until when a grant of the server may count although another client may rely on the lost
 * key.
 */
uint64_t check_doubtful_until(const struct checker *checker, unsigned server, unsigned key);

/* Records that the process was told of a grant that the server carried out at `at`. */
void check_granted(struct checker *checker, const struct event_base *process, unsigned server,
                   const struct effect *effect, uint64_t granted_at);

/* Decides by its grants whether a hold is excused. */
void check_excuse(const struct checker *checker, struct hold *hold);

/* Checks that no vote of a replica counted, where every client knew that it was one. */
void check_replicas(const struct checker *checker, const struct hold *hold);

/* Returns whether the hold has no quorum without grants that are still in doubt. */
bool check_is_excused(const struct checker *checker, const struct hold *hold);

/*
 * Returns whether a loss at one of the listed servers may not be known to all clients since
 * `since`.
 */
bool check_is_doubted(const struct checker *checker, uint32_t list, uint64_t since);

/* Returns until when, at the most, a client may rely on a key that a server evicted. */
uint64_t check_evicted_until(const struct checker *checker, unsigned server, uint32_t keys);

/* Admits a holder at the gate of the resource behind the key, in the order of the news. */
void check_gate(struct checker *checker, const struct hold *hold, unsigned key, uint64_t number);

/* Checks that a quorum of servers keeps the lock's key while the lock is valid. */
void check_backing(struct checker *checker, const struct hold *hold);

#endif
