/* What the parts of the checker share. Everybody else includes check.h. */
#ifndef REDLOCK_SIM_CHECKER_H
#define REDLOCK_SIM_CHECKER_H

#include "check.h"

#include "wire/script.h"

static inline struct checker *checker_of(const struct world *world) {
    return world->checker;
}

/* The number of a token that was given out; NO_TOKEN: it is none of ours. */
uint32_t check_token_of(const struct checker *checker, const char *text, size_t length);

/* key_count: it is none of ours. */
unsigned check_key_of(const struct checker *checker, const struct word *name);

/* NULL: nobody holds a lock with it. */
struct hold *check_hold_of(const struct checker *checker, uint32_t token);

/* Until when a lock claims to be valid, by its process's clock; 0: it does not. */
uint64_t check_claimed_end(const redlock_lock *lock);

/*
 * The true time until which the server certainly keeps the key for the token: of a reader's, what
 * is there now.
 */
uint64_t check_kept_until(const struct checker *checker, unsigned server, uint32_t number);

/* Until when, by the server's clock, a reader's token is listed and the key shared; 0: it is not.
 */
int64_t check_listed(const struct checker *checker, struct master *master, uint32_t number);

/* The list of a key's readers, or the note of a waiting writer, at a server; NULL: there is none.
 */
const struct store_key *check_beside(const struct checker *checker, struct master *master,
                                     unsigned key, const char *suffix);

/* How many readers of a key it lists whose shares have not lapsed. */
unsigned check_alive(const struct checker *checker, struct master *master, unsigned key);

/* Whether a key is held by readers. */
bool check_is_shared(const struct store_key *key);

/* What holds of all keys of a token at a server: the least of their values. */
uint64_t check_least(const uint64_t values[KEYS_MAX], uint32_t keys);

/* How a script is called: the first key and the first argument of each lock are its own. */
struct form {
    enum script script;
    unsigned keys, arguments; /* of each lock; 0 keys: the arguments tell */
    bool is_reader;
};

/* A script has run. Before what it did is noted with the tokens. */
void check_shared_call(struct checker *checker, struct master *master, const struct words *words,
                       const struct form *form);

/* What one command does to the list of readers may concern all of them. */
void check_readers(struct checker *checker);

/* What a token is to keep has an end, and its application asked for no longer. */
void check_ttl(struct checker *checker, const struct master *master, uint32_t number,
               int64_t expires_ms);

bool check_is_valid(const struct hold *hold);
bool check_is_listed(uint32_t list, unsigned server);
unsigned check_quorum_of(uint32_t list);

/* Has heard a beat that the server gave then. */
void check_heard(struct event_base *process, unsigned server, uint64_t at);

/* What the server grants now may count although somebody may rely until then on what it lost. */
uint64_t check_doubtful_until(const struct checker *checker, unsigned server, unsigned key);

/* Has been told of a grant that the server carried out then. */
void check_granted(struct checker *checker, const struct event_base *process, unsigned server,
                   const struct effect *effect, uint64_t granted_at);

/* Looks at whose grants a hold was told with. */
void check_excuse(const struct checker *checker, struct hold *hold);

/* It was told with no quorum, but for grants that are still in doubt. */
bool check_is_excused(const struct checker *checker, const struct hold *hold);

/* Whether something that one of the servers lost may not be known to all since then. */
bool check_is_doubted(const struct checker *checker, uint32_t list, uint64_t since);

/* A server evicted one of the keys, and those who relied on that do so until then, at the most. */
uint64_t check_evicted_until(const struct checker *checker, unsigned server, uint32_t keys);

/* A resource behind the key lets holders in one after the other, as they are told. */
void check_gate(struct checker *checker, const struct hold *hold, unsigned key, uint64_t number);

/* While a lock is valid a quorum of servers keeps its key for so long. */
void check_backing(struct checker *checker, const struct hold *hold);

#endif
