/*
 * The simulated network between processes and servers: connections that keep their order, and the
 * faults of networks. A server is a master with its place in the network.
 */
#ifndef REDLOCK_SIM_NETWORK_H
#define REDLOCK_SIM_NETWORK_H

#include "master.h"
#include "process.h"
#include "world.h"

#include "wire/reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define SERVERS_MAX 9

/* Port of the first server; the ports of the others follow. */
#define SIM_FIRST_PORT 7000

/* Address at which connections are refused. */
#define SIM_NOBODY "10.0.0.9"
#define PROCESSES_MAX 64

/* Maximum length of a channel's name. */
#define SIM_CHANNEL_MAX 63

struct conn;
struct network;

/* The effect of a command on one of our keys, for the checker. */
struct effect {
    uint32_t token;
    unsigned key;
    bool is_new; /* whether the token did not have the key at this server before */
    /* whether the token had the key before the command, or the command asked for it */
    bool was_kept;
    uint64_t
        doubtful_until; /* until then, a client may rely on keys that the server lost; 0: none */
    int64_t left_ms;    /* time until the key expires, by the master's clock */
    int64_t lasts_ms;   /* time between the command that set the expiry and the expiry */
    uint64_t set_at;    /* instant of that command, by the process's clock */
};

/* One answer of a server, in flight. */
struct answer {
    STAILQ_ENTRY(answer) link;
    struct reply reply;
    uint64_t at;  /* instant at which the server gave it */
    bool is_beat; /* whether it carries the server's clock */
    struct effect *effects;
    unsigned effect_count;
    char text[];
};
STAILQ_HEAD(answer_list, answer);

enum message_kind {
    MESSAGE_CONNECT, /* to the server */
    MESSAGE_DATA,
    MESSAGE_CLOSE,
    MESSAGE_CONNECTED, /* to the client */
    MESSAGE_ANSWERS,
    MESSAGE_PUBLISHED, /* a text on the channel that the connection has subscribed to */
    MESSAGE_REFUSED,
    MESSAGE_RESET
};

struct message {
    STAILQ_ENTRY(message) link;
    enum message_kind kind;
    uint64_t at;      /* instant of its arrival */
    uint64_t service; /* time that the server takes for it; ns */
    bool is_served;   /* whether the server has started serving it */
    struct answer_list answers;
    size_t length;
    char bytes[]; /* followed by a NUL */
};
STAILQ_HEAD(message_list, message);

/* One direction of a connection. */
struct stream {
    struct message_list messages;
    struct task arrival; /* arrival of the first message */
    uint64_t last_at;
    bool is_lost; /* whether messages sent from now on are lost */
};

/* A connection. It outlives its client side, for messages sent before that side was closed. */
struct link {
    TAILQ_ENTRY(link) all_link;
    struct network *network;
    struct server *server;
    struct event_base *process;
    unsigned number;
    struct conn *conn; /* NULL: the client side is closed */
    bool is_accepted;  /* whether the server side is open */
    uint64_t
        /* instant of its latest heartbeat, or of the answer; or at which it was opened */
        beaten_at;
    bool is_beating; /* whether a heartbeat was answered on it */
    /* instant at which its process learned that a call stopped at its bound; 0: none did */
    uint64_t stopped_at;
    unsigned db;                       /* its selected database */
    char channel[SIM_CHANNEL_MAX + 1]; /* the channel that it subscribes to; "": none */
    struct stream requests, replies;
    int64_t *sent; /* readings of its process's clock at which commands were sent (actions.c) */
    size_t sent_count, sent_capacity;
    size_t ran_count;           /* number of commands that have reached the server */
    struct message_list unsent; /* messages that do not fit in the client's socket */
    size_t in_socket;           /* bytes sent that the server has not read */
};
TAILQ_HEAD(link_list, link);

/* A channel on which a process has received a message, until the library knows of its end. */
struct heard_channel {
    LIST_ENTRY(heard_channel) link;
    const struct server *server; /* NULL: nothing has arrived */
    char name[SIM_CHANNEL_MAX + 1];
};
LIST_HEAD(heard_channel_list, heard_channel);

/* The path between one process and one server. */
struct path {
    uint64_t latency, jitter;
    uint64_t requests_held_until, replies_held_until;
    unsigned late; /* per mille of the messages that are late */
    /* arrival of the latest late message: until then those after it are held up */
    uint64_t late_requests_until, late_replies_until;
};

/* The delay of a late message: TCP's least time to send a lost packet again. */
#define LATE (200 * MS)

struct server {
    struct network *network;
    struct master master;
    uint64_t down_until;
    bool is_gone; /* whether it does not even refuse connections while down */
    /* instant until which clients do not count its grants: it was restarted empty */
    uint64_t young_until;
    uint64_t paused_until;
    uint64_t slowness;            /* maximum additional time of an answer */
    const char *error;            /* answer to SET and to scripts until `error_until` */
    uint64_t error_until;         /* end of these answers */
    unsigned pattern_subscribers; /* number of subscribers to all channels, by a pattern */
    /* instant until which published texts are lost, doubled or late */
    uint64_t pushes_disturbed_until;
    /* instant until which AUTH and SELECT are answered with an error */
    uint64_t login_refused_until;
    uint64_t busy_until; /* end of its work on the messages received so far */
};

struct network {
    struct world *world;
    struct server servers[SERVERS_MAX];
    unsigned server_count;
    struct path paths[PROCESSES_MAX][SERVERS_MAX];
    struct link_list links;
    unsigned link_count; /* number of connections made so far */
    struct heard_channel_list heard_channels[PROCESSES_MAX];

    /*
     * Time that a server takes for a command and for a key, in ns; capacity of a socket in bytes.
     * 0: no limit.
     */
    uint64_t command_time, key_time;
    size_t socket_size;

    /* Returns the delay of a top-up to a server, in ns; NULL: there is none. */
    uint64_t (*on_top_up)(void *owner, const struct link *link);
    void *top_up_owner;
};

void network_init(struct network *network, struct world *world, unsigned servers);
void network_finish(struct network *network);

/* ---- for connections: io/net.c ---- */

struct link *link_open(struct network *network, struct event_base *process, unsigned server,
                       struct conn *conn);
void link_send(struct link *link, const char *bytes, size_t length);
/* Closes the client side; messages sent before still arrive. */
void link_close(struct link *link);

/* Takes ownership of a message that has arrived for a connection. */
void conn_arrived(struct conn *conn, struct message *message);
void message_free(struct message *message);
/*
 * Discards the arrived messages of a connection whose process is dead, and whose memory is about to
 * be freed.
 */
void conn_abandon(struct conn *conn);

/* ---- for the nemesis ---- */

/* Ends the connection as a broken network does: messages in flight may be lost. */
void link_break(struct link *link);

/* Breaks all connections of the server, as its end does. */
void server_break(struct server *server);

/* Closes the connections of a dead process. Must be called before its memory is freed. */
void network_bury(struct network *network, const struct event_base *process);

#endif
