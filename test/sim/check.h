/*
 * The invariants. The simulator reports to the checker the commands sent, their effects at servers,
 * the answers delivered, and the notifications to applications. The checker compares all this with
 * the validity of locks. Of the library it reads only a lock's token and the end of its validity.
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

/*
 * A lock reported as acquired to an application, which has neither released it nor been notified of
 * its loss.
 */
struct hold {
    LIST_ENTRY(hold) link;
    struct event_base *process;
    redlock_lock *lock;
    unsigned key;  /* its only key, or the lowest */
    uint32_t keys; /* mask of all its keys */
    bool is_reader;
    uint32_t token;
    uint64_t began;    /* start of the round that acquired it, in true time */
    uint64_t end;      /* end of its validity as last seen, by the process's clock; 0: not valid */
    bool is_over;      /* whether its validity has ended, and must not come back */
    bool is_disturbed; /* whether the process was paused or preempted since the validity began */
    uint64_t excused_until; /* until then, the lock may have no quorum without grants in doubt */
    bool was_overlapped;    /* whether its overlap was counted already */
    bool was_shared;        /* whether it was shared with another reader */
};
LIST_HEAD(hold_list, hold);

/* A fence, and the instant at which it was reported to an application. */
struct fence {
    uint64_t number, reported_at;
    uint64_t first; /* of its range */
    uint32_t token; /* number of the token that it was reported under */
};

/* All fences of a key. */
struct fences {
    struct fence *list;
    size_t count, capacity;
};

/* A mask of keys that no other client may acquire for a while. */
struct stay {
    uint32_t keys;
    bool is_reader; /* whether the keys were shared, so that other readers may still acquire them */
    uint64_t until;
};

/* A loss of keys at a server, and the time for which clients may not know of it. */
struct doubt {
    uint64_t began;
    uint64_t unseen_until; /* grants until then may count */
    /* grants until then may count for a client that had no answer from the server before */
    uint64_t unknown_until;
    uint64_t over_at; /* no client relies on the lost keys from then on */
};

/* The requests for a key that are pending, or have the lock. */
struct claim {
    unsigned open;
    unsigned requests; /* number of requests so far, and of foreign clients that had the key */
    uint64_t user;     /* the worker, and its client, that claimed the key last */
    /* instants until which releases of this user, and of others, may be in flight */
    uint64_t until, others_until;
    uint64_t contended_at; /* start of the latest request that had a contender */
};

/* A client's first heartbeat answer from a server, by the instant at which the server gave it. */
struct heard {
    unsigned life;
    uint64_t at;
};

/* Number of stays to keep: older ones are over. */
#define STAYS_MAX 16

/* An application's question about a key. */
struct look {
    unsigned key;
    /* token of a hold of the key that was valid at the time of the question; or NO_TOKEN */
    uint32_t token;
    uint64_t fence;  /* fence that the question is about */
    uint64_t newest; /* largest fence of the key reported before the question */
    uint64_t asked_at;
    unsigned moves; /* number of changes of the process's lists at the time of the question */
};

/* Number of channels to remember for a token: those of all nodes, several times. */
#define CHANNELS_MAX 32

/* A token, and the servers' keys that have it. */
struct token {
    char text[41];
    struct event_base *process;
    unsigned life;                /* number of the life of the process's client */
    unsigned key;                 /* lowest of its keys; KEYS_MAX: not sent yet */
    uint32_t keys;                /* mask of all its keys */
    uint64_t first_sent;          /* instant of the first send, by the process's clock */
    int64_t ticket;               /* its request's ticket; 0: none was sent */
    bool is_redrawn;              /* whether the request has drawn another ticket once */
    bool is_queued;               /* whether an entry was requested under the token */
    uint32_t asked[CHANNELS_MAX]; /* marks of the latest channels sent with it */
    unsigned asked_count;
    uint64_t acquired_at; /* true instant at which the acquisition was reported */
    /* masks of servers: the lists that were the client's when the latest round began */
    uint32_t round_list, round_next_list;
    uint32_t earlier_list, earlier_next_list; /* those of before they changed */
    /* two pairs of them, by which the latest validity may be counted, and its end (actions.c) */
    uint32_t counted[4];
    uint64_t counted_end;
    uint32_t given_up;       /* mask of the keys that are written as given up (actions.c) */
    unsigned handovers;      /* number of requests that it was handed over to */
    uint64_t fence;          /* latest fence reported under it */
    uint64_t range_asked_at; /* true instant of the request whose acquisition took its range */
    bool is_between;         /* whether the latest of them is yet to be notified of that */
    bool is_reader;   /* whether the token belongs to a reader, and is listed among readers */
    bool is_acquired; /* whether the application was notified that it has the lock */
    bool is_over;     /* whether the request failed, or the lock was released */
    bool is_given_up; /* whether a release was sent for it while no lock had it */
    /* whether its client is closed, and its holder is yet to be notified */
    bool is_notification_due;
    uint64_t failed; /* number of refused allocations of its process when the token was drawn */
    unsigned moves;  /* number of changes of the process's lists when the token was drawn */
    /* True time until which each node is certain to keep the key for the token. */
    uint64_t keeps_until[SERVERS_MAX][KEYS_MAX];
    /* Expiry of the key at each node, and the command that set it. */
    struct expiry {
        int64_t at_ms;    /* expiry by the server's clock */
        int64_t lasts_ms; /* time between the command and the expiry, by the server's clock */
        uint64_t set_at;  /* instant of the command by the process's clock */
    } expiries[SERVERS_MAX][KEYS_MAX];
    /*
     * Instant, by the process's clock, until which each node keeps the key, as far as replies to
     * the process show.
     */
    uint64_t promised[SERVERS_MAX][KEYS_MAX];
    /* The latest grant that each node pushed. */
    struct pushed {
        uint64_t at;             /* true instant of the push */
        uint64_t until;          /* true time until which the node then kept the key */
        uint64_t doubtful_until; /* as below */
    } pushed[SERVERS_MAX][KEYS_MAX];
    /*
     * Instant until which the grant may count although another client may rely on keys that the
     * server lost.
     */
    uint64_t doubtful_until[SERVERS_MAX][KEYS_MAX];
    uint32_t by_replicas; /* mask of the servers that granted it while known to be replicas */
    uint32_t by_stale; /* mask of the servers whose latest grant came when they were not trusted */
    unsigned fresh_on[SERVERS_MAX]; /* connection of its grant, if that came when trusted; or 0 */
    bool is_late[SERVERS_MAX];      /* whether a message of a closed connection set the key */
    unsigned set_on[SERVERS_MAX];   /* connection on which the SET was sent; 0: none */
    unsigned released_on[SERVERS_MAX]; /* connection on which the token's latest script was sent */
};

/* Keys that a command has passed on to waiters, until its other effects are recorded. */
#define PASSES_MAX 64
struct passes {
    struct pass {
        uint32_t token;
        unsigned key;
        unsigned heard; /* number of subscribers that received it */
    } list[PASSES_MAX];
    unsigned count;
    bool is_mixed;       /* whether the command also gives entries to several waiters */
    bool is_joint;       /* whether the command is about several keys */
    uint64_t counted_by; /* number of the command that counted subscribers last */
    /* server of that count, and number of its counts, one for each entry handled */
    unsigned counted_at, counted;
    bool has_found_deaf; /* whether it has found a waiter that does not listen */
    uint32_t taker; /* token that the command has given the key, if it requests a single entry */
    uint32_t notified[KEYS_MAX]; /* token whose client was notified of the key's expiry */
};

/* The waiters that servers have recently notified of permits. */
#define OFFERS_MAX 256
struct offer {
    unsigned server;
    char entry_id[20]; /* the first digits of their tokens */
};

/* Grants of a server to a process that replicas have yet to confirm. */
#define UNCONFIRMED_MAX 64
struct unconfirmed {
    struct {
        uint32_t token;
        unsigned key;
        uint64_t promised;
    } grants[UNCONFIRMED_MAX];
    unsigned count;
};

/* The queues in which requests wait. */
enum waiting_queue {
    WAITING_FOR_KEY,
    WAITING_SEVERAL,
    WAITING_READERS,
    WAITING_PERMITS,
    WAITING_QUEUES
};

/* Counters that show whether requests wait in queues at all. */
struct waiting {
    uint64_t queued[WAITING_QUEUES]; /* answers that gave or confirmed an entry */
    uint64_t pushed;                 /* keys that a push gave to a client, counted at arrival */
    /* acquisitions by pushes, confirmed or not, according to the library's own round */
    uint64_t taken;
};

/* The upper bound, proven by a server's heartbeats, of the server's clock less a process's. */
struct clock_bound {
    bool is_known;
    int64_t ahead;
    uint64_t at; /* instant by the process's clock from which the bound grows by drift */
};

struct load_world;

/*
 * The first waiter in the queue, for which a server keeps readers out, and which has not asked
 * since.
 */
struct silence {
    uint32_t token; /* NO_TOKEN: none */
    uint64_t since; /* when it was notified first; NEVER: not yet */
};

struct checker {
    struct load_world *load; /* the world of the profile "load", or NULL */
    struct world *world;
    struct network *network;
    uint32_t
        lists[PROCESSES_MAX]; /* masks of servers: the list of which each process needs a quorum */
    /* masks of servers: the next list, of which each process needs a quorum too; 0: none */
    uint32_t next_lists[PROCESSES_MAX];
    unsigned moves[PROCESSES_MAX]; /* number of changes of the lists */
    bool has_duplicate; /* whether one server is two nodes, with two connections of each client */
    bool has_caps; /* whether the limits on commands are so low that releases may be postponed */
    double drift;
    size_t memory_max;       /* of a client */
    bool keeps_assumptions;  /* whether an overlap is a violation; otherwise overlaps are counted */
    bool clocks_jump;        /* whether processes' clocks jump, so that validity may come back */
    bool server_clocks_jump; /* whether servers' clocks jump, so that keys may live longer */
    unsigned db;             /* database of all clients */
    unsigned key_count;
    char keys[KEYS_MAX][200];
    /* number of permits of a semaphore, each with one of the keys; 0: the keys are locks */
    unsigned permits;
    char semaphore[200];
    uint64_t asked_ttl_ms[PROCESSES_MAX][KEYS_MAX];  /* longest TTL requested */
    uint32_t released_last[PROCESSES_MAX][KEYS_MAX]; /* token of the latest release */
    uint32_t set_last[SERVERS_MAX][KEYS_MAX];        /* latest token given to the node */
    struct token *tokens;
    uint32_t token_count, token_capacity;
    struct hold_list holds;
    bool is_fenced;
    bool has_readers;
    bool
        /* whether nodes keep their counters: then fences grow, whatever else fails */
        keeps_counters;
    struct fences fences[KEYS_MAX];
    redlock_gate gates[KEYS_MAX]; /* gates of the resources that the keys guard */

    uint64_t beat_gap;       /* longest time between a heartbeat and a command that needs one; ns */
    uint64_t keep_alive_gap; /* longest time between two heartbeats; ns */
    bool closes_idle;        /* whether idle clients close their connections */
    uint64_t unseen; /* longest time for which a server's loss may be unknown to its clients; ns */
    uint64_t lasts;  /* longest lifetime of a lock; ns */
    struct doubt losses[SERVERS_MAX][KEYS_MAX], jumps[SERVERS_MAX];
    /* Instant from which every client knows that the server is a replica; 0: it is a master. */
    uint64_t replica_from[SERVERS_MAX];
    uint64_t evicted_until[SERVERS_MAX]
                          [KEYS_MAX]; /* until then, a client may rely on the evicted key */
    /* sum of the setbacks of the servers' clocks, by which keys live longer */
    int64_t set_back_ms[SERVERS_MAX];
    struct heard heard[PROCESSES_MAX][SERVERS_MAX];
    struct clock_bound clock_bounds[PROCESSES_MAX][SERVERS_MAX];
    bool has_guards;
    /* instants at which the latest heartbeats whose answers have arrived were run */
    uint64_t beat_ran[PROCESSES_MAX][SERVERS_MAX];
    uint64_t disturbed_at[PROCESSES_MAX]; /* instant of the process's latest pause or preemption */
    unsigned
        is_closing[PROCESSES_MAX]; /* number of the life of the client that is closed, plus 1 */

    uint32_t wait_replicas; /* number of replicas that must confirm a grant; 0: none */
    struct claim claims[KEYS_MAX];
    struct silence silences[SERVERS_MAX][KEYS_MAX];
    struct passes passes;
    struct offer offers[OFFERS_MAX];
    unsigned offer_count; /* number of offers so far */
    struct unconfirmed unconfirmed[PROCESSES_MAX][SERVERS_MAX];
    struct stay stays[STAYS_MAX];
    unsigned stay_count; /* number of stays so far */

    uint64_t acquired, lost, failed, released; /* outcomes reported to applications */
    /* Acquisitions with a fence; those of them that took a second round, and those of an earlier
     * range. */
    uint64_t fenced, raised, from_ranges;
    uint64_t stayed;         /* locks released early, or left behind by a process that died */
    uint64_t permits_held;   /* acquisitions of a permit */
    uint64_t permits_second; /* those by a second round trip */
    uint64_t permits_later;  /* those after more round trips, or after a pause */
    uint64_t overlaps;       /* holds that were valid while another hold of the key was */
    uint64_t shared;         /* readers admitted while another reader held the key */
    uint64_t excused;        /* excused holds that were valid beside another one */
    uint64_t looks;          /* questions about keys that were answered with certainty */
    struct waiting waiting;
    uint64_t passed;      /* keys that servers passed on to waiters */
    uint64_t handed_over; /* locks handed over to another request of their client */
};

void check_init(struct checker *checker, struct network *network, unsigned keys);
void check_finish(struct checker *checker);

/* ---- reported by the simulated outside ---- */

/*
 * Draws a token. For a request's later try `text` contains, on entry, the token of the previous
 * one.
 */
void check_new_token(struct event_base *process, char text[41]);
void check_sent(struct link *link, const char *data, size_t length);
/* Checks the effects of a command that a server has run or refused. The caller owns the array. */
struct effect *check_effects(struct link *link, const struct words *words,
                             const struct reply *reply, unsigned *count);
bool check_is_beat(const struct words *words);
/*
 * Records a text that a server has published, in the middle of a command, to `heard` subscribers.
 */
void check_published(struct world *world, struct master *master, const struct word *text,
                     unsigned heard);
/* Records that a server has counted a channel's subscribers, in the middle of a command. */
void check_counted(struct world *world, const struct master *master, unsigned subscribers);
/* Takes a text that was published to a process. */
void check_pushed(struct event_base *process, unsigned server, const char *text, size_t length);
/* Records that a server has lost its keys in a restart, which shows its clients the loss. */
void check_forgotten(struct master *master);
/*
 * Called after check_forgotten, when no client knows of the loss yet. `is_young`: the marker shows
 * each client that the memory is new; otherwise only clients with an earlier answer of the server
 * can see it.
 */
void check_flushed(struct master *master, bool is_young);
/*
 * Records, after check_forgotten, that the server is a replica. `is_new`: it has just become one,
 * which clients do not know yet.
 */
void check_followed(struct master *master, bool is_new);
/* Records that a replica is a master again, or has ended. */
void check_promoted(struct master *master);
/* Records that a server has lost the keys of a mask, of which no client is ever notified. */
void check_evicted(struct master *master, uint32_t keys);
/*
 * Records that a server's clock was set. `is_seen`: in a restart, where clients read the clock
 * before anything else. `is_young`: because of that restart no client relies on the server anyway.
 */
void check_clock_set(struct master *master, int64_t by, bool is_seen, bool is_young);
/* Records that a message has arrived at a process's socket, where it is still unread. */
void check_arrived(const struct link *link, const struct message *message);
void check_delivered(struct link *link, const struct answer *answer, uint64_t sent_at);
/* Checks before and after each stretch of a process's code in which no time passes. */
void check_process(struct event_base *process, bool was_disturbed);
/* Records the servers of which a client needs a quorum from now on. */
void check_lists(struct event_base *process, uint32_t list);
/* Records the next servers, of which it needs a quorum too; 0: none any more. */
void check_next_list(struct event_base *process, uint32_t list);

/* ---- reported by the application ---- */

/*
 * Records REDLOCK_OK of an acquisition. `hold` is the caller's memory; check_unheld ends its use.
 */
void check_held(struct hold *hold, struct event_base *process, redlock_lock *lock, uint32_t keys,
                redlock_mode mode, uint64_t min_validity);
/* Returns the key of the lock's permit. */
unsigned check_permit(struct checker *checker, const redlock_lock *lock);
/* Checks the fence of an acquisition that began at `began_at`, in true time. */
void check_fence(const struct hold *hold, uint64_t began_at);
void check_unheld(struct hold *hold);
/*
 * Checks that the validity of a hold that is being released, without a reported loss, is not over.
 */
void check_not_lost(const struct hold *hold);
/* Records that the application relies on the hold without checking its validity. */
void check_used(struct hold *hold);
/* Checks on_lost with REDLOCK_EEXPIRED. */
void check_expired(const struct hold *hold);
/* Checks REDLOCK_OK of an extension that was requested at `asked_at`, by the process's clock. */
void check_extended(struct hold *hold, uint64_t asked_at);
/*
 * Records that the request with this token has failed, or that the lock is about to be released: no
 * key may stay.
 */
void check_over(struct event_base *process, const redlock_lock *lock);
/*
 * Records that a released lock, in spite of check_over, may be handed over to the next request of
 * the same process, under the same token.
 */
void check_parting(struct event_base *process, const redlock_lock *lock);

/*
 * Checks an acquisition, which may be such a handover. The request began at `began_at`, in true
 * time; a token is handed over at most `most` times.
 */
void check_handed_over(struct event_base *process, const redlock_lock *lock, uint64_t began_at,
                       uint32_t most);

/*
 * Record that a hold is released, or that its process dies: no other client may acquire its keys
 * for min_hold_ms after the round that acquired it, or for lock_delay_ms after its validity.
 */
void check_stays(const struct hold *hold, uint64_t min_hold_ms);
void check_delays(const struct hold *hold, uint64_t lock_delay_ms);

/*
 * Records that a hold's client is being closed: on_lost must precede the release. check_notified
 * records that on_lost was called.
 */
void check_closed(const struct hold *hold);
void check_notified(struct event_base *process, const redlock_lock *lock);

/* Returns a mask of the servers with this vote in the lock's report. */
uint32_t check_voters(const redlock_lock *lock, redlock_vote vote);

/* Record that a worker requests a lock of these keys, and that it wants them no longer. */
void check_claims(const struct event_base *process, unsigned worker, uint32_t keys);
void check_claims_end(const struct event_base *process, unsigned worker, uint32_t keys);
/* Records that a foreign client has set a key. */
void check_taken(struct checker *checker, unsigned key);
/* Returns whether nobody but the latest request has ever wanted any of the keys. */
bool check_is_first(const struct event_base *process, uint32_t keys);
/* Returns whether another request wanted any of the keys at any time since `began_at`. */
bool check_had_contender(const struct event_base *process, uint32_t keys, uint64_t began_at);
/*
 * Returns whether, at a quorum of its nodes, no request or no answer of the process was held up by
 * a late message since `began_at`: such nodes answer in time.
 */
bool check_was_in_reach(const struct event_base *process, uint64_t began_at);

/* Records a question about a key, and about `fence` if it is a question about a fence. */
void check_asks(struct look *look, struct event_base *process, unsigned key, uint64_t fence);
/* Checks REDLOCK_OK of an inspection. */
void check_seen(const struct look *look, struct event_base *process, const redlock_view *view);
/* Checks REDLOCK_OK or REDLOCK_ELOST of a question about a fence. */
void check_compared(const struct look *look, struct event_base *process, redlock_status status);

/* ---- at the end ---- */

/*
 * Checks that no ended request has left a key, after the network has been intact for long enough.
 */
void check_leftovers(struct checker *checker);

/*
 * Checks, after a rest, that idle clients keep their connections alive, and have no others than
 * those for commands.
 */
void check_resting(const struct checker *checker, const struct network *network);

#endif
