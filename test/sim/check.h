/*
 * The invariants. The simulator tells the checker what is sent, what servers did, what was
 * delivered, and what an application was told; the checker compares that with what locks claim.
 * It looks into a lock for its token and the end of its validity, and at nothing else of the
 * library.
 */
#ifndef REDLOCK_SIM_CHECK_H
#define REDLOCK_SIM_CHECK_H

#include "network.h"
#include "process.h"
#include "words.h"
#include "world.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define KEYS_MAX 4

#define NO_TOKEN UINT32_MAX

/* A lock that an application was told it has, and has not released nor was told to have lost. */
struct hold {
    LIST_ENTRY(hold) link;
    struct event_base *process;
    redlock_lock *lock;
    unsigned key;  /* its only one, or the least */
    uint32_t keys; /* mask: all of them */
    bool is_reader;
    uint32_t token;
    uint64_t began;    /* the round that got it, by the process's clock */
    uint64_t end;      /* of its validity as last looked at, by the process's clock; 0: not valid */
    bool is_over;      /* its validity has ended: it must not come back */
    bool is_disturbed; /* the process was paused or preempted since the validity began */
    uint64_t excused_until; /* it had no quorum without grants that are in doubt until then */
    bool was_overlapped;    /* counted already */
    bool was_shared;        /* with another reader */
};
LIST_HEAD(hold_list, hold);

/* A fence, and when an application was told it. */
struct fence {
    uint64_t number, told_at;
};

/* All fences of a key. */
struct fences {
    struct fence *list;
    size_t count, capacity;
};

/* Keys that nobody else is to have for a while: a mask, and until when, in true time. */
struct stay {
    uint32_t keys;
    bool is_reader; /* those were shared: with other readers still */
    uint64_t until;
};

/* What a server lost, and what its clients make of that. */
struct doubt {
    uint64_t began;
    uint64_t unseen_until;  /* what it grants until then may count */
    uint64_t unknown_until; /* a client that has not heard its clock before may count this */
    uint64_t over_at;       /* nobody relies on what it lost */
};

/* The first beat of a server that a client heard, by when the server gave it. */
struct heard {
    unsigned life;
    uint64_t at;
};

/* The latest of them; older ones are over. */
#define STAYS_MAX 16

/* A question about a key that an application has asked. */
struct look {
    unsigned key;
    uint32_t token;  /* of a hold of the key that was valid when it was asked; or NO_TOKEN */
    uint64_t fence;  /* that is asked about */
    uint64_t newest; /* the largest fence of the key that had been told by then */
    uint64_t asked_at;
    unsigned moves; /* of its process */
};

/* A token, and what the servers did with it. */
struct token {
    char text[41];
    struct event_base *process;
    unsigned life;       /* of the process's client */
    unsigned key;        /* the least of its keys; KEYS_MAX: not sent yet */
    uint32_t keys;       /* mask: all of them */
    uint64_t first_sent; /* by the process's clock */
    bool is_reader;      /* it stands in the list of those who share the key */
    bool is_acquired;    /* its application was told that it has the lock */
    bool is_over;        /* the request failed, or the lock was released */
    bool is_to_be_told;  /* its client is closed, and its holder was not told so yet */
    uint64_t failed;     /* refused allocations of its process when it was made */
    unsigned moves;      /* of its process, when it was made */
    /* True time: the node certainly keeps the key for it. */
    uint64_t keeps_until[SERVERS_MAX][KEYS_MAX];
    /* The expiry that the key has for it, by the server's clock, and the command that set it. */
    struct expiry {
        int64_t at_ms;
        int64_t lasts_ms;
        uint64_t set_at; /* by the process's clock */
    } expiries[SERVERS_MAX][KEYS_MAX];
    /* The same by the process's clock: known by replies that it received. */
    uint64_t promised[SERVERS_MAX][KEYS_MAX];
    /* What it was granted may count, although somebody may rely on what the server lost. */
    uint64_t doubtful_until[SERVERS_MAX][KEYS_MAX];
    bool is_late[SERVERS_MAX];    /* it was set by a message of a connection that had been closed */
    unsigned set_on[SERVERS_MAX]; /* the connection on which the SET was sent; 0: none */
    unsigned released_on[SERVERS_MAX]; /* and the latest script about it */
};

/* What a server granted a process, and its replicas were asked about. */
#define UNCONFIRMED_MAX 64
struct unconfirmed {
    struct {
        uint32_t token;
        unsigned key;
        uint64_t promised;
    } grants[UNCONFIRMED_MAX];
    unsigned count;
};

struct load_world;

struct checker {
    struct load_world *load; /* the world's, in the profile "load"; else NULL */
    struct world *world;
    struct network *network;
    uint32_t lists[PROCESSES_MAX]; /* masks of servers: those whose quorum each process needs */
    uint32_t next_lists[PROCESSES_MAX]; /* and a quorum of these too; 0: there are none */
    unsigned moves[PROCESSES_MAX];      /* how often that has changed */
    bool has_twin; /* one server is two nodes: there are two connections to it */
    bool has_caps; /* so few commands may be under way that a release may be put off */
    double drift;
    bool keeps_assumptions;  /* else overlaps are counted, and are no violation */
    bool clocks_jump;        /* processes' clocks do: then validity may come back */
    bool server_clocks_jump; /* then keys may live longer */
    unsigned db;             /* that of all clients */
    unsigned key_count;
    char keys[KEYS_MAX][200];
    unsigned permits; /* of a semaphore, whose permits have the keys; 0: the keys are locks */
    char semaphore[200];
    uint64_t asked_ttl_ms[PROCESSES_MAX][KEYS_MAX];  /* the longest that was asked for */
    uint32_t released_last[PROCESSES_MAX][KEYS_MAX]; /* the token of the latest release */
    uint32_t set_last[SERVERS_MAX][KEYS_MAX];        /* the token that the node was given last */
    struct token *tokens;
    uint32_t token_count, token_capacity;
    struct hold_list holds;
    bool is_fenced;
    bool has_readers;
    bool keeps_counters; /* nodes do: so fences grow, whatever else is broken */
    struct fences fences[KEYS_MAX];
    redlock_gate gates[KEYS_MAX]; /* of a resource that each key guards */

    uint64_t unseen; /* how long a server may lose something without its clients' knowing; ns */
    uint64_t lasts;  /* how long a lock lasts, at the most; ns */
    struct doubt losses[SERVERS_MAX][KEYS_MAX], jumps[SERVERS_MAX];
    uint64_t evicted_until[SERVERS_MAX][KEYS_MAX]; /* somebody may rely on what was lost there */
    int64_t set_back_ms[SERVERS_MAX];              /* servers' clocks, so far: keys live longer */
    struct heard heard[PROCESSES_MAX][SERVERS_MAX];
    bool has_guards;
    uint64_t disturbed_at[PROCESSES_MAX]; /* they were last paused, or preempted */
    unsigned is_closing[PROCESSES_MAX];   /* the life of the client that is closed, and one */

    uint32_t wait_replicas; /* so many have to confirm a grant; 0: it counts without */
    struct unconfirmed unconfirmed[PROCESSES_MAX][SERVERS_MAX];
    struct stay stays[STAYS_MAX];
    unsigned stay_count; /* so far */

    uint64_t acquired, lost, failed, released; /* what applications were told */
    uint64_t fenced, raised; /* acquisitions with a fence; and those that took a second round */
    uint64_t stayed;         /* released early, or left behind by a process that died */
    uint64_t permits_held;   /* acquisitions of a permit; */
    uint64_t permits_second; /* of them: by a second round trip; */
    uint64_t permits_later;  /* and after more of them, or after a pause */
    uint64_t overlaps;       /* holds that were valid while another one of the key was */
    uint64_t shared;         /* readers that were let in while another one was */
    uint64_t excused;        /* holds that were valid beside another one, and are excused */
    uint64_t looks;          /* questions about keys that were answered with certainty */
};

void check_init(struct checker *checker, struct network *network, unsigned keys);
void check_finish(struct checker *checker);

/* ---- told by the simulated outside ---- */

void check_new_token(struct event_base *process, char text[41]);
void check_sent(struct link *link, const char *data, size_t length);
/* After a server has run a command, or refused it; the array is the caller's. */
struct effect *check_effects(const struct link *link, const struct words *words,
                             const struct reply *reply, unsigned *count);
bool check_is_beat(const struct words *words);
/* A server has lost its keys. Of that its clients are told by its restart ... */
void check_forgotten(struct master *master);
/* ... or not yet: call it after that. */
void check_flushed(struct master *master);
/* It has lost these keys (a mask), of which no client is ever told. */
void check_evicted(struct master *master, uint32_t keys);
/* Its clock has been set, in a restart, where the first that its clients hear is its clock
   (`is_seen`), or not; `is_young`: nobody relies on it because of that restart anyway. */
void check_clock_set(struct master *master, int64_t by, bool is_seen, bool is_young);
/* Something has arrived at a process's socket, and nobody has read it yet. */
void check_arrived(const struct link *link, const struct message *message);
void check_delivered(struct event_base *process, unsigned server, const struct answer *answer,
                     uint64_t sent_at);
/* Before and after each stretch of a process's code in which no time passes. */
void check_process(struct event_base *process, bool was_disturbed);
/* A client needs a quorum of these servers from now on, whatever more it asks for. */
void check_lists(struct event_base *process, uint32_t list);
/* It needs a quorum of these too; 0: no more. */
void check_next_list(struct event_base *process, uint32_t list);

/* ---- told by the application ---- */

/* REDLOCK_OK of an acquisition. The hold is the caller's memory, and ends with check_unheld. */
void check_held(struct hold *hold, struct event_base *process, redlock_lock *lock, uint32_t keys,
                redlock_mode mode, uint64_t min_validity);
/* The key of the permit that it is. */
unsigned check_permit(struct checker *checker, const redlock_lock *lock);
/* Its fence, of an acquisition that began then, in true time. */
void check_fence(const struct hold *hold, uint64_t began_at);
void check_unheld(struct hold *hold);
/* It is released, and its loss has not been told: then it must not be over. */
void check_not_lost(const struct hold *hold);
/* The application acts on it without a look at its validity. */
void check_used(struct hold *hold);
/* on_lost with REDLOCK_EEXPIRED. */
void check_expired(const struct hold *hold);
/* REDLOCK_OK of an extension that was asked for at `asked_at`, by the process's clock. */
void check_extended(struct hold *hold, uint64_t asked_at);
/* The request of this token has failed, or the lock is to be released: no key is to stay. */
void check_over(struct event_base *process, const redlock_lock *lock);

/* It is released, or its process dies, and nobody else is to have its keys for so long after the
   round that got it, or after its validity. */
void check_stays(const struct hold *hold, uint64_t min_hold_ms);
void check_delays(const struct hold *hold, uint64_t lock_delay_ms);

/* Its client is being closed: on_lost must come before its release is sent. */
void check_closed(const struct hold *hold);
void check_told(struct event_base *process, const redlock_lock *lock);

/* A question about a key is asked; about this fence, if it is one about a fence. */
void check_asks(struct look *look, struct event_base *process, unsigned key, uint64_t fence);
/* REDLOCK_OK of an inspection. */
void check_seen(const struct look *look, struct event_base *process, const redlock_view *view);
/* REDLOCK_OK or REDLOCK_ELOST of a question about a fence. */
void check_compared(const struct look *look, struct event_base *process, redlock_status status);

/* ---- at the end ---- */

/* The network is whole, and has been for long enough: no key is left of a request that ended. */
void check_leftovers(struct checker *checker);

#endif
