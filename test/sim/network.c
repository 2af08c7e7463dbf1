/*
 * The happy path: link_open sends CONNECT, the server accepts; DATA arrives after the path's
 * latency, in order; the server runs each command in it, and its answers return as one message. A
 * published text is a separate message to each subscriber. Messages wait in their stream while
 * their server is paused or their path is held, and then arrive late, as TCP delivers retransmitted
 * data.
 */
#include "network.h"

#include "check.h"
#include "parsed_call.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void on_request(void *owner);
static void on_reply(void *owner);
static unsigned publish(const void *owner, const struct word *channel, const struct word *text);
static unsigned subscribers(const void *owner, const struct word *channel);

void network_init(struct network *network, struct world *world, unsigned servers) {
    *network = (struct network){.world = world, .server_count = servers};
    TAILQ_INIT(&network->links);
    for (unsigned i = 0; i < servers; i++) {
        network->servers[i].network = network;
        master_init(&network->servers[i].master, world, i);
        network->servers[i].master.store.publish = publish;
        network->servers[i].master.store.subscribers = subscribers;
    }
}

/* ---- messages ---- */

static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static struct message *message_create(enum message_kind kind, const char *bytes, size_t length) {
    struct message *message = allocate(sizeof(*message) + length + 1);
    message->kind = kind;
    message->length = length;
    STAILQ_INIT(&message->answers);
    if (length > 0) {
        memcpy(message->bytes, bytes, length);
    }
    return message;
}

void message_free(struct message *message) {
    struct answer *answer;
    while ((answer = STAILQ_FIRST(&message->answers)) != NULL) {
        STAILQ_REMOVE_HEAD(&message->answers, link);
        free(answer->effects);
        free(answer);
    }
    free(message);
}

/* ---- streams ---- */

static void stream_init(struct stream *stream, struct link *link, void (*on_arrival)(void *)) {
    STAILQ_INIT(&stream->messages);
    task_init(&stream->arrival, on_arrival, link);
}

static void stream_drop(struct world *world, struct stream *stream) {
    struct message *message;
    task_cancel(world, &stream->arrival);
    while ((message = STAILQ_FIRST(&stream->messages)) != NULL) {
        STAILQ_REMOVE_HEAD(&stream->messages, link);
        message_free(message);
    }
}

static void stream_next(struct world *world, struct stream *stream) {
    const struct message *first = STAILQ_FIRST(&stream->messages);
    if (first != NULL) {
        task_schedule(world, &stream->arrival, first->at);
    }
}

/* Returns the delay of a message with a top-up. */
static uint64_t lateness_of(const struct link *link, const struct message *message) {
    const struct network *network = link->network;
    struct words words;
    size_t at = 0, length;
    if (network->on_top_up == NULL || message->kind != MESSAGE_DATA) {
        return 0;
    }
    while ((length = words_read(&words, message->bytes + at, message->length - at)) > 0) {
        if (parsed_call_is_top_up(&words)) {
            return network->on_top_up(network->top_up_owner, link);
        }
        at += length;
    }
    return 0;
}

static void stream_send(struct link *link, struct stream *stream, struct message *message) {
    struct network *network = link->network;
    struct world *world = network->world;
    struct path *path = &network->paths[link->process->index][link->server->master.index];
    bool is_request = stream == &link->requests;
    if (stream->is_lost) {
        message_free(message);
        return;
    }
    uint64_t slowness = is_request ? 0 : link->server->slowness;
    uint64_t at = world->now + path->latency + rng_below(&world->rng, path->jitter + slowness + 1);
    uint64_t held = is_request ? path->requests_held_until : path->replies_held_until;
    at = at > held ? at : held;
    at += is_request ? lateness_of(link, message) : 0;
    bool is_late = rng_chance(&world->rng, path->late);
    at += is_late ? LATE : 0;
    at = at > stream->last_at ? at : stream->last_at;
    if (is_late) {
        *(is_request ? &path->late_requests_until : &path->late_replies_until) = at;
    }
    stream->last_at = message->at = at;
    STAILQ_INSERT_TAIL(&stream->messages, message, link);
    if (stream->arrival.position == 0) {
        stream_next(world, stream);
    }
}

/* ---- sockets that may be full ---- */

/* Maximum bytes of a message, unless one command is longer. */
#define MESSAGE_MOST 4096

static uint64_t service_of(const struct network *network, const struct words *words) {
    long long keys = 1;
    if (words->count > 2 && word_is(&words->word[0], "EVALSHA")) {
        word_number(&words->word[2], &keys);
    }
    return network->command_time + network->key_time * (uint64_t)keys;
}

/* Returns a message of the first commands of `bytes`, about as many as fit into a message. */
static struct message *cut(const struct network *network, const char *bytes, size_t length) {
    struct words words;
    size_t end = 0, next;
    uint64_t service = 0;
    while (end < MESSAGE_MOST && (next = words_read(&words, bytes + end, length - end)) > 0) {
        service += service_of(network, &words);
        end += next;
    }
    struct message *message = message_create(MESSAGE_DATA, bytes, end > 0 ? end : length);
    message->service = service;
    return message;
}

/* Sends as many messages as fit into the socket. */
static void fill_socket(struct link *link) {
    struct message *message;
    while (link->conn != NULL && link->in_socket < link->network->socket_size &&
           (message = STAILQ_FIRST(&link->unsent)) != NULL) {
        STAILQ_REMOVE_HEAD(&link->unsent, link);
        link->in_socket += message->length;
        stream_send(link, &link->requests, message);
    }
}

static void drop_unsent(struct link *link) {
    struct message *message;
    while ((message = STAILQ_FIRST(&link->unsent)) != NULL) {
        STAILQ_REMOVE_HEAD(&link->unsent, link);
        message_free(message);
    }
}

/* Returns whether the server serves the message later. */
static bool is_to_wait(struct link *link, struct message *message) {
    struct server *server = link->server;
    uint64_t now = link->network->world->now;
    if (message->is_served || message->service == 0) {
        return false;
    }
    uint64_t begins = server->busy_until > now ? server->busy_until : now;
    message->is_served = true;
    server->busy_until = begins + message->service;
    task_schedule(link->network->world, &link->requests.arrival, server->busy_until);
    return true;
}

static struct message *stream_take(struct stream *stream) {
    struct message *message = STAILQ_FIRST(&stream->messages);
    STAILQ_REMOVE_HEAD(&stream->messages, link);
    return message;
}

/* ---- links ---- */

static void link_free(struct link *link) {
    stream_drop(link->network->world, &link->requests);
    stream_drop(link->network->world, &link->replies);
    drop_unsent(link);
    TAILQ_REMOVE(&link->network->links, link, all_link);
    free(link->sent);
    free(link);
}

static void say(struct link *link, enum message_kind kind) {
    stream_send(link, &link->replies, message_create(kind, NULL, 0));
}

struct link *link_open(struct network *network, struct event_base *process, unsigned server,
                       struct conn *conn) {
    struct link *link = allocate(sizeof(*link));
    link->network = network;
    link->server = &network->servers[server];
    link->process = process;
    link->conn = conn;
    link->beaten_at = network->world->now;
    link->number = ++network->link_count;
    STAILQ_INIT(&link->unsent);
    stream_init(&link->requests, link, on_request);
    stream_init(&link->replies, link, on_reply);
    TAILQ_INSERT_TAIL(&network->links, link, all_link);
    stream_send(link, &link->requests, message_create(MESSAGE_CONNECT, NULL, 0));
    return link;
}

void link_send(struct link *link, const char *bytes, size_t length) {
    if (link->network->socket_size == 0) {
        stream_send(link, &link->requests, message_create(MESSAGE_DATA, bytes, length));
        return;
    }
    while (length > 0) {
        struct message *message = cut(link->network, bytes, length);
        bytes += message->length;
        length -= message->length;
        STAILQ_INSERT_TAIL(&link->unsent, message, link);
    }
    fill_socket(link);
}

void link_close(struct link *link) {
    link->conn = NULL;
    drop_unsent(link);
    stream_drop(link->network->world, &link->replies);
    link->replies.is_lost = true;
    stream_send(link, &link->requests, message_create(MESSAGE_CLOSE, NULL, 0));
}

static bool coin(struct world *world) {
    return rng_chance(&world->rng, 500);
}

void link_break(struct link *link) {
    struct world *world = link->network->world;
    link->is_accepted = false;
    if (coin(world)) {
        stream_drop(world, &link->requests);
    }
    if (coin(world)) {
        stream_drop(world, &link->replies);
    }
    if (link->conn != NULL) {
        say(link, MESSAGE_RESET);
    }
}

void server_break(struct server *server) {
    struct link *link;
    TAILQ_FOREACH(link, &server->network->links, all_link) {
        if (link->server == server && server->is_gone) {
            link->is_accepted = false; /* without an answer: the host is gone */
        } else if (link->server == server) {
            link_break(link);
        }
    }
}

void network_bury(struct network *network, const struct event_base *process) {
    struct link *link, *next;
    for (link = TAILQ_FIRST(&network->links); link != NULL; link = next) {
        next = TAILQ_NEXT(link, all_link);
        if (link->process == process && link->conn != NULL) {
            conn_abandon(link->conn);
            link_close(link);
        }
    }
    LIST_INIT(&network->heard_channels[process->index]);
}

void network_finish(struct network *network) {
    while (!TAILQ_EMPTY(&network->links)) {
        link_free(TAILQ_FIRST(&network->links));
    }
    for (unsigned i = 0; i < network->server_count; i++) {
        master_finish(&network->servers[i].master);
    }
}

/* ---- the server's side ---- */

static bool is_lock_command(const struct words *words) {
    return word_is(&words->word[0], "SET") || word_is(&words->word[0], "EVALSHA") ||
           word_is(&words->word[0], "EVAL");
}

static struct answer *answer_create(const struct reply *reply) {
    struct answer *answer = allocate(sizeof(*answer) + reply->length + 1);
    answer->reply = *reply;
    if (reply->text != NULL) {
        memcpy(answer->text, reply->text, reply->length);
        answer->reply.text = answer->text;
    }
    return answer;
}

static bool is_login(const struct words *words) {
    return word_is(&words->word[0], "AUTH") || word_is(&words->word[0], "SELECT");
}

static struct answer *refuse(const char *text) {
    struct reply refusal = {.type = REPLY_ERROR, .text = text, .length = strlen(text)};
    return answer_create(&refusal);
}

/* Sends a text to a subscriber; or loses it, sends it twice, or delays it with all that follows. */
static void push(struct link *link, const struct word *text) {
    struct world *world = link->network->world;
    bool is_disturbed = link->server->pushes_disturbed_until > world->now;
    uint64_t fault = is_disturbed ? rng_below(&world->rng, 4) : 3;
    if (fault == 0) {
        TRACE(world, "node %u: a push is lost", link->server->master.index);
        return;
    }
    if (fault == 1) {
        uint64_t late = world->now + rng_below(&world->rng, 1500 * MS);
        link->replies.last_at = late > link->replies.last_at ? late : link->replies.last_at;
    }
    for (unsigned i = 0; i < (fault == 2 ? 2 : 1); i++) {
        stream_send(link, &link->replies,
                    message_create(MESSAGE_PUBLISHED, text->text, text->length));
    }
}

/* Subscribers count until the server has seen their end. */
static unsigned publish(const void *owner, const struct word *channel, const struct word *text) {
    const struct master *master = owner;
    struct server *server = (struct server *)((uintptr_t)master - offsetof(struct server, master));
    struct link *link;
    unsigned count = 0;
    TAILQ_FOREACH(link, &server->network->links, all_link) {
        if (link->server == server && link->is_accepted && word_is(channel, link->channel)) {
            push(link, text);
            count++;
        }
    }
    check_published(server->network->world, &server->master, text, count);
    return count + server->pattern_subscribers;
}

static unsigned subscribers(const void *owner, const struct word *channel) {
    const struct master *master = owner;
    struct server *server = (struct server *)((uintptr_t)master - offsetof(struct server, master));
    struct link *link;
    unsigned count = 0;
    TAILQ_FOREACH(link, &server->network->links, all_link) {
        count += link->server == server && link->is_accepted && word_is(channel, link->channel);
    }
    /* A call that asks for several channels only looks at the entries of others. */
    if (master->store.channels_asked == 1) {
        check_counted(server->network->world, master, count);
    }
    return count;
}

static struct answer *run_subscribe(struct link *link, const struct words *words) {
    static const struct reply one = {.type = REPLY_INTEGER, .integer = 1};
    const struct word *channel = &words->word[1];
    if (words->count != 2 || channel->length == 0 || channel->length > SIM_CHANNEL_MAX) {
        return refuse("ERR wrong number of arguments for 'subscribe' command");
    }
    memcpy(link->channel, channel->text, channel->length);
    link->channel[channel->length] = '\0';
    return answer_create(&one);
}

static struct answer *run(struct link *link, const struct words *words) {
    struct server *server = link->server;
    struct master *master = &server->master;
    uint64_t now = server->network->world->now;
    link->ran_count++;
    if (server->login_refused_until > now && is_login(words)) {
        return refuse("NOPERM this user has no permissions to log in");
    }
    if (server->error_until > now && is_lock_command(words)) {
        return refuse(server->error);
    }
    if (word_is(&words->word[0], "SUBSCRIBE")) {
        return run_subscribe(link, words);
    }
    master->store.db = link->db;
    master->store.commands++;
    struct reply reply = master_run(master, words);
    link->db = master->store.db;
    struct answer *answer = answer_create(&reply);
    answer->at = now;
    answer->is_beat = check_is_beat(words);
    answer->effects = check_effects(link, words, &reply, &answer->effect_count);
    return answer;
}

static void run_all(struct link *link, const struct message *message) {
    struct message *back = message_create(MESSAGE_ANSWERS, NULL, 0);
    struct words words;
    size_t at = 0;
    while (at < message->length) {
        size_t length = words_read(&words, message->bytes + at, message->length - at);
        if (length == 0) {
            fprintf(stderr, "the client sent bytes that are no commands\n");
            exit(3);
        }
        struct answer *answer = run(link, &words);
        STAILQ_INSERT_TAIL(&back->answers, answer, link);
        at += length;
    }
    stream_send(link, &link->replies, back);
}

static void serve(struct link *link, const struct message *message) {
    struct server *server = link->server;
    bool is_down = server->down_until > link->network->world->now;
    if (is_down && server->is_gone) {
        return;
    }
    if (message->kind == MESSAGE_CONNECT) {
        link->is_accepted = !is_down;
        say(link, is_down ? MESSAGE_REFUSED : MESSAGE_CONNECTED);
    } else if (!link->is_accepted) {
        say(link, MESSAGE_RESET);
    } else if (message->kind == MESSAGE_DATA) {
        run_all(link, message);
    }
}

static void on_request(void *owner) {
    struct link *link = owner;
    struct world *world = link->network->world;
    const struct server *server = link->server;
    if (server->paused_until > world->now) {
        task_schedule(world, &link->requests.arrival, server->paused_until);
        return;
    }
    if (is_to_wait(link, STAILQ_FIRST(&link->requests.messages))) {
        return;
    }
    struct message *message = stream_take(&link->requests);
    link->in_socket -= link->in_socket >= message->length ? message->length : link->in_socket;
    TRACE(world, "node %u gets message %d of link %u (process %u), %zu bytes", server->master.index,
          (int)message->kind, link->number, link->process->index, message->length);
    serve(link, message);
    bool is_last = message->kind == MESSAGE_CLOSE;
    message_free(message);
    fill_socket(link);
    if (is_last) {
        link_free(link);
    } else {
        stream_next(world, &link->requests);
    }
}

/* ---- the client's side ---- */

static void on_reply(void *owner) {
    struct link *link = owner;
    struct message *message = stream_take(&link->replies);
    stream_next(link->network->world, &link->replies);
    check_arrived(link, message);
    conn_arrived(link->conn, message);
}
