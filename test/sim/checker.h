/* Declarations shared by the parts of the checker. All other files include check.h. */
#ifndef REDLOCK_SIM_CHECKER_H
#define REDLOCK_SIM_CHECKER_H

#include "check.h"

struct form;

static inline struct checker *checker_of(const struct world *world) {
    return world->checker;
}

/* Returns the number of a token that was drawn; NO_TOKEN for any other text. */
uint32_t check_token_of(const struct checker *checker, const char *text, size_t length);

/* Returns the number of the token of a lock's latest try; NO_TOKEN if there was none. */
uint32_t check_token_of_lock(const struct checker *checker, const redlock_lock *lock);

/* Returns the key's number; key_count for any other name. */
unsigned check_key_of(const struct checker *checker, const struct word *name);

/* Returns the hold with this token; NULL when there is none. */
struct hold *check_hold_of(const struct checker *checker, uint32_t token);

/*
 * Returns the end of the validity that a lock reports, by its process's clock; 0 when it reports
 * none.
 */
uint64_t check_reported_end(const redlock_lock *lock);

/*
 * Returns the true time until which the server is certain to keep the key for the token; for a
 * reader, as far as the key there now shows.
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

/* Returns the number of listed readers of a key whose shares have not expired. */
unsigned check_alive(const struct checker *checker, struct master *master, unsigned key);

/* Returns whether readers hold the key. */
bool check_is_shared(const struct store_key *key);

/* Returns the least value among the keys of a token, which holds for all of them. */
uint64_t check_least(const uint64_t values[KEYS_MAX], uint32_t keys);

/* Checks a script call that has run, before its effects are recorded with the tokens. */
void check_shared_call(struct checker *checker, struct master *master, const struct words *words,
                       const struct form *form);

/*
 * Records the effect of a command with the token on the key `name`. Returns whether the token has
 * the key now. `is_late`: the connection on which the command was sent has ended.
 */
bool check_record_effect(struct checker *checker, struct master *master, const struct word *name,
                         uint32_t number, bool is_late, struct effect *effect);

/* Records the keys that a command has passed on, after those that it has freed were recorded. */
void check_record_passes(struct checker *checker, struct master *master);

/* Checks all readers: one command on the list may affect all of them. */
void check_readers(struct checker *checker);

/* Checks that a token's key has an expiry, and lives no longer than its application requested. */
void check_ttl(struct checker *checker, const struct master *master, uint32_t number,
               int64_t expires_ms);

/* Checks that a client has received a probe on its channel before it requests an entry. */
void check_channel(struct checker *checker, const struct link *link, const struct word *channel);

/* Checks that all entries that a request asks for have the same ticket. */
void check_ticket(struct checker *checker, uint32_t number, const struct word *text);

/* Checks that no listening waiter was ahead of the token to which the server gave the key. */
void check_turn(struct checker *checker, struct master *master, uint32_t number, unsigned key);

/*
 * Checks that a server that has given the token `value` an entry has set the flag, and listed the
 * key; an eviction may remove both.
 */
void check_flag(struct checker *checker, struct master *master, const struct word *value,
                unsigned key);

/*
 * Checks that no listening waiter is queued for a key that is free after its release, which is not
 * recorded with the token yet.
 */
void check_freed(struct checker *checker, struct master *master, uint32_t number, unsigned key);

/* Records that a waiter has asked a server again for its entry in the queue for a key. */
void check_asks_again(struct checker *checker, struct master *master, uint32_t number,
                      unsigned key);

/*
 * Checks that a server keeps readers out for the first waiter only while that waiter asks: it is
 * notified to do so, and loses its entry after four reservations.
 */
void check_kept_out(struct checker *checker, struct master *master, unsigned key);

/* Checks that no reader is first in the queue for a key that readers hold. */
void check_let_in(struct checker *checker, struct master *master, unsigned key);

/* Returns whether a listening waiter is queued for a key that is not left to others. */
bool check_is_awaited(const struct checker *checker, struct master *master, unsigned key);
/*
 * Returns the connection on which the client of an entry, "<value> <channel> ...", subscribes to
 * its channel, as far as the server knows; NULL when there is none.
 */
const struct link *check_listener_of(const struct checker *checker, const struct master *master,
                                     const struct member *entry);

/* Records that a server notifies a waiter of a permit. */
struct push;
void check_permit_offered(struct checker *checker, const struct master *master,
                          const struct push *push);

/* Checks that a permit is not given to a token, of this value, before its turn in the queue. */
void check_permit_turn(struct checker *checker, struct master *master, uint32_t number,
                       const char *value, bool is_in_queue);

/* Checks that a waiter was notified of a permit that a token had, if the permit is free now. */
void check_permit_freed(struct checker *checker, struct master *master, uint32_t number,
                        unsigned key);

/*
 * Checks that a waiter that has left is in no queue for permits. With the ticket 1 it returns a
 * permit that it was notified of, and may still have an entry: its ask may have crossed the
 * message.
 */
void check_permit_left(struct checker *checker, struct master *master, const struct word *value,
                       const struct word *ticket);

/* Checks that the first listening waiter is notified of a key that its release has left there. */
void check_announced(struct checker *checker, struct master *master, uint32_t number, unsigned key);

/* Returns whether the command has stopped at the bound of the entries that it may handle. */
bool check_is_cut_short(const struct checker *checker, const struct master *master);

/* Begins a command that may pass keys on. */
void check_passes_clear(struct passes *passes);

/* Checks that a waiter that has left is in no queue. */
void check_left(struct checker *checker, struct master *master, const struct word *value,
                const struct word *name);

/*
 * Checks an entry, given by its token's text. Called for each entry in a key's queue whose client
 * listens.
 */
typedef void check_entry(const struct checker *checker, const struct master *master, unsigned key,
                         const char *text, size_t length);
void check_entries(const struct checker *checker, struct master *master, unsigned key,
                   check_entry *check);

/* Returns the most by which two clocks drift apart in a time. */
int64_t check_drifted(const struct checker *checker, uint64_t passed);

/*
 * Records a heartbeat answer, "the server's clock was at time_us": it was read after the process
 * sent the question.
 */
void check_beat(struct checker *checker, const struct event_base *process, unsigned server,
                uint64_t time_us, uint64_t sent_at);

/*
 * Returns the tightest upper bound that heartbeats prove for a server's clock less the process's;
 * INT64_MIN before the first one.
 */
int64_t check_proven_ahead(const struct checker *checker, const struct event_base *process,
                           unsigned server, uint64_t now);

/* Returns a number that identifies the name of a channel; never 0. */
uint32_t check_channel_mark(const char *name, size_t length);

/* Returns whether an entry was requested under the token on a channel, by its mark. */
bool check_has_asked(const struct token *token, uint32_t mark);

/* Records that an entry is requested on a channel. */
void check_asks_for_entry(struct checker *checker, uint32_t number, const struct word *channel);

/* Checks the duration for which a key is passed on. */
void check_reservation(struct checker *checker, const struct push *push);

/*
 * Checks that a key that a token has released does not belong to another one that was not notified.
 */
void check_given(const struct checker *checker, struct master *master, uint32_t number,
                 unsigned key);

/* Checks that the waiter to which a key was passed on, and which has it now, listens. */
void check_heard_of(struct checker *checker, struct master *master, const struct pass *pass);

bool check_is_valid(const struct hold *hold);
bool check_is_listed(uint32_t list, unsigned server);
unsigned check_quorum_of(uint32_t list);

/* Records that the process has received a heartbeat answer that the server gave at `at`. */
void check_heard(struct event_base *process, unsigned server, uint64_t at);

/*
 * Returns until when a grant of the server may count although another client may rely on the lost
 * key.
 */
uint64_t check_doubtful_until(const struct checker *checker, unsigned server, unsigned key);

/* Records that the process learned of a grant that the server made at `at`. */
void check_granted(struct checker *checker, const struct event_base *process, unsigned server,
                   const struct effect *effect, uint64_t granted_at);

/*
 * Records whether the server was known to be a replica when it granted at `granted_at`: its latest
 * grant to the token counts, for the role may have changed since the key was set.
 */
void check_role(struct checker *checker, unsigned server, uint32_t token, uint64_t granted_at);

/* Decides by its grants whether a hold is excused, by the lists of its process. */
void check_excuse(const struct checker *checker, struct hold *hold);

/* Likewise, by two lists; `next` is 0 outside of a change of nodes. */
void check_excuse_by(const struct checker *checker, struct hold *hold, uint32_t list,
                     uint32_t next);

/* Records whether a grant that arrives now comes too long after the server's latest heartbeat. */
void check_freshness(struct checker *checker, const struct event_base *process, unsigned server,
                     uint32_t number, unsigned link_number);

/*
 * Checks that no vote counted of a replica after every client knew that it was one, nor of a server
 * whose latest heartbeat proved nothing any more.
 */
void check_votes(const struct checker *checker, const struct hold *hold);

/* Returns whether the hold has no quorum without grants that are still in doubt. */
bool check_is_excused(const struct checker *checker, const struct hold *hold);

/* Returns whether some client may not know of a loss at one of the listed servers since `since`. */
bool check_is_doubted(const struct checker *checker, uint32_t list, uint64_t since);

/* Returns until when, at most, a client may rely on a key that a server evicted. */
uint64_t check_evicted_until(const struct checker *checker, unsigned server, uint32_t keys);

/*
 * Admits a holder at the gate of the resource that the key protects, in the order of the
 * notifications.
 */
void check_gate(struct checker *checker, const struct hold *hold, unsigned key, uint64_t number);

/* Checks that a quorum of servers keeps the lock's key while the lock is valid. */
void check_backing(struct checker *checker, const struct hold *hold);

#endif
