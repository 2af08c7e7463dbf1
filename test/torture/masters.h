/*
 * Three servers that do what Redis does with the few commands of the library, and run its scripts
 * (support/store.h). They live in the program, are asked once in each turn, and use no event, nor
 * the library's allocator, so that nothing of theirs is counted among the library's requests.
 */
#ifndef REDLOCK_TORTURE_MASTERS_H
#define REDLOCK_TORTURE_MASTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASTERS_COUNT 3
#define MASTERS_ALL 7u /* mask of all */
#define MASTERS_PASSWORD "sesame-17"

enum manner {
    MANNER_WELL,    /* does what it is asked */
    MANNER_ERROR,   /* refuses SET and scripts with an error */
    MANNER_LOCKED,  /* refuses logins, and all else before one */
    MANNER_MUTE,    /* does it, and says nothing, on this connection never again */
    MANNER_DEAF,    /* does not even read */
    MANNER_NONSENSE /* answers SET and scripts with what is no answer to that */
};

enum address {
    ADDRESS_NUMBER,
    ADDRESS_NAME,  /* which is in the hosts file */
    ADDRESS_ASKED, /* a name that the name server is asked for; it never answers */
    ADDRESS_LOGIN,
    ADDRESS_SOCKET,
    ADDRESS_COUNT
};

/* Once in a process. */
void masters_listen(void);

/* All up and well, without links, keys and scripts. */
void masters_reset(void);

/* Does what has arrived; false when nothing had. */
bool masters_turn(void);

const char *masters_uri(unsigned master, enum address address);

/* The address of the only name server that there is. */
const char *masters_name_server(void);

/* Each takes a mask of masters. */
void masters_behave(unsigned mask, enum manner manner);
void masters_stop(unsigned mask); /* connections break, and are refused */
void masters_start(unsigned mask);
void masters_cut(unsigned mask); /* connections break */
void masters_forget_scripts(unsigned mask);
void masters_forget(unsigned mask, const char *key);
void masters_count(unsigned mask, const char *key, uint64_t counter); /* sets a key's counter */

/* Another client takes the key, and gives it back. */
void masters_occupy(unsigned mask, const char *key, unsigned ttl_ms);

/* How many of them have the key now. */
unsigned masters_having(const char *key);

/* How many keys of the library's they have, all in all, without counters, notes and markers. */
unsigned masters_having_any(void);

/* How often the library gave a key back, and had it. */
unsigned masters_released(void);

/* SETs and scripts that have arrived since the reset. */
unsigned masters_asked(void);

#endif
