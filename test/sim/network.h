/*
 * The simulated network between processes and servers: connections that keep their order, and
 * whatever networks do to them. A server is a master with a place in the network.
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

/* That of the first server; the others follow. */
#define SIM_FIRST_PORT 7000

/* An address at which connections are refused. */
#define SIM_NOBODY "10.0.0.9"
#define PROCESSES_MAX 5

struct conn;
struct network;

/* What a command did to one key of ours, for the checker. */
struct effect {
    uint32_t token;
    unsigned key;
    bool is_new;   /* the server had not had it for the token before */
    bool was_kept; /* the key had had the token before the command; or it was to take it */
    uint64_t doubtful_until; /* somebody may rely on what the server lost; 0: nobody */
    int64_t left_ms;         /* until it expires, by the master's clock */
    int64_t lasts_ms;        /* between the command that set this expiry, and that */
    uint64_t set_at;         /* when that command was carried out, by the process's clock */
};

/* One answer of a server, on its way. */
struct answer {
    STAILQ_ENTRY(answer) link;
    struct reply reply;
    uint64_t at;  /* when the server gave it */
    bool is_beat; /* it tells the server's clock */
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
    MESSAGE_REFUSED,
    MESSAGE_RESET
};

struct message {
    STAILQ_ENTRY(message) link;
    enum message_kind kind;
    uint64_t at;      /* arrives */
    uint64_t service; /* for so long the server is at work on it; ns */
    bool is_served;   /* the server has come to it */
    struct answer_list answers;
    size_t length;
    char bytes[];
};
STAILQ_HEAD(message_list, message);

/* One direction of a connection. */
struct stream {
    struct message_list messages;
    struct task arrival; /* of the first */
    uint64_t last_at;
    bool is_lost; /* what is sent from now on never arrives */
};

/* A connection. It outlives its client side, for what was sent before that was closed. */
struct link {
    TAILQ_ENTRY(link) all_link;
    struct network *network;
    struct server *server;
    struct event_base *process;
    unsigned number;
    struct conn *conn;  /* NULL: the client side is closed */
    bool is_accepted;   /* the server side stands */
    uint64_t beaten_at; /* the latest beat on it was sent; or it was opened */
    unsigned db;        /* that it has selected */
    struct stream requests, replies;
    struct message_list unsent; /* the client's socket is full */
    size_t in_socket;           /* bytes that were sent and that the server has not read */
};
TAILQ_HEAD(link_list, link);

/* Between one process and one server. */
struct path {
    uint64_t latency, jitter;
    uint64_t requests_held_until, replies_held_until;
};

struct server {
    struct network *network;
    struct master master;
    uint64_t down_until;
    bool is_gone;         /* while down: does not even refuse */
    uint64_t young_until; /* it was restarted empty, and nobody takes its word for so long */
    uint64_t paused_until;
    uint64_t slowness;            /* how much longer it takes, at the most */
    const char *error;            /* what it answers to SET and to scripts ... */
    uint64_t error_until;         /* until then */
    uint64_t login_refused_until; /* AUTH and SELECT are answered with an error */
    uint64_t busy_until;          /* with what it has been sent */
};

struct network {
    struct world *world;
    struct server servers[SERVERS_MAX];
    unsigned server_count;
    struct path paths[PROCESSES_MAX][SERVERS_MAX];
    struct link_list links;
    unsigned link_count; /* made so far */

    /* The rate at which a server works, ns; and what a socket takes, bytes. 0: no bound. */
    uint64_t command_time, key_time;
    size_t socket_size;
};

void network_init(struct network *network, struct world *world, unsigned servers);
void network_finish(struct network *network);

/* ---- for connections: io/net.c ---- */

struct link *link_open(struct network *network, struct event_base *process, unsigned server,
                       struct conn *conn);
void link_send(struct link *link, const char *bytes, size_t length);
/* The client side closes; what it had sent still arrives. */
void link_close(struct link *link);

/* What has arrived for a connection; it takes the message over. */
void conn_arrived(struct conn *conn, struct message *message);
void message_free(struct message *message);
/* Its process is dead: its memory will be gone, and what had arrived is thrown away. */
void conn_abandon(struct conn *conn);

/* ---- for the nemesis ---- */

/* Ends the connection as a broken network does: what is under way may be lost. */
void link_break(struct link *link);

/* All connections of the server break, as its end does. */
void server_break(struct server *server);

/* The process is dead: its connections are closed. Call before its memory is freed. */
void network_bury(struct network *network, const struct event_base *process);

#endif
