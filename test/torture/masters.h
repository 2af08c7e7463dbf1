/*
 * Three servers that execute the library's few commands as Redis does, and run its scripts
 * (support/store.h). They live in the program, answer once in each turn, and use neither events nor
 * the library's allocator, so that none of their requests counts as the library's.
 */
#ifndef REDLOCK_TORTURE_MASTERS_H
#define REDLOCK_TORTURE_MASTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASTERS_COUNT 3
#define MASTERS_ALL 7u /* mask of all masters */
#define MASTERS_PASSWORD "sesame-17"

enum manner {
    MANNER_WELL,    /* executes commands, and answers */
    MANNER_ERROR,   /* refuses SET and scripts with an error */
    MANNER_LOCKED,  /* refuses logins, and all commands before a login */
    MANNER_MUTE,    /* executes commands, without answers for the rest of the connection */
    MANNER_DEAF,    /* reads nothing */
    MANNER_PRIVATE, /* refuses subscriptions */
    MANNER_NONSENSE /* answers SET and scripts in a wrong form */
};

enum address {
    ADDRESS_NUMBER,
    ADDRESS_NAME,  /* a name in the hosts file */
    ADDRESS_ASKED, /* a name for the name server, which never answers */
    ADDRESS_LOGIN,
    ADDRESS_SOCKET,
    ADDRESS_COUNT
};

/* Starts listening. Must be called once in a process. */
void masters_listen(void);

/* Resets all masters: up, well-behaved, without links, keys and scripts. */
void masters_reset(void);

/* Executes the commands that have arrived. Returns false when there were none. */
bool masters_turn(void);

const char *masters_uri(unsigned master, enum address address);

/* Returns the address of the only name server. */
const char *masters_name_server(void);

/* The following functions take a mask of masters. */
void masters_behave(unsigned mask, enum manner manner);
void masters_stop(unsigned mask); /* connections break, and are refused */
void masters_start(unsigned mask);
void masters_cut(unsigned mask); /* connections break */
void masters_forget_scripts(unsigned mask);
void masters_forget(unsigned mask, const char *key);
void masters_count(unsigned mask, const char *key, uint64_t counter); /* sets a key's counter */

/* Take the key as another client; release it to the first waiter, as that client would. */
void masters_occupy(unsigned mask, const char *key, unsigned ttl_ms);
void masters_give_up(unsigned mask, const char *key);

/* Returns the number of masters that have the key now. */
unsigned masters_having(const char *key);

/*
 * Returns the number of the library's keys at all masters, without counters, intents, flags and
 * markers. A queue counts as a key while it has waiters.
 */
unsigned masters_having_any(void);

/* Returns the number of entries in the key's queues, at all masters together. */
unsigned masters_queued(const char *key);

/* Returns how many messages other than probes were sent to the library since the reset. */
unsigned masters_pushed(void);

/* Returns how many probes were sent to the library since the reset. */
unsigned masters_probed(void);

/* Returns the number of masters that notify when a key is changed directly. */
unsigned masters_watching(void);

/* Returns how often the library has released a key that it had. */
unsigned masters_released(void);

/* Returns the number of SETs and scripts that have arrived since the reset. */
unsigned masters_asked(void);

#endif
