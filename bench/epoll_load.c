/*
 * The limit: the minimum of work for plain sockets and libevent's epoll. All SETs of a turn are
 * written at once, and all its releases are one script call; all nodes get the same bytes, which
 * are encoded once. No deadlines, no reconnects, no release after a failure: a lost connection ends
 * the program.
 *
 * Every node answers the same commands in the same order, so one ring holds the rounds of all
 * nodes, and a node's position in the ring is the round that it answers next.
 */
#include "clock.h"
#include "floor.h"
#include "memory.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 65536
#define COMMAND_ROOM 256 /* size of a SET, or of one lock in a release call */
#define JOINED_MAX 512   /* maximum number of releases in one call */
#define FIRST_RING 1024

/* Answers with a letter for each key. */
static const char release_script[] =
    "local answer = {} for i = 1, #KEYS do "
    "if redis.call('get', KEYS[i]) == ARGV[i] then redis.call('del', KEYS[i]) answer[i] = 'y' "
    "else answer[i] = 'n' end end return table.concat(answer)";

enum step { ACQUIRE, RELEASE };

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
};

struct round {
    size_t slot;
    size_t joined; /* rounds of this command from here on: 1 for a SET */
    unsigned awaited;
    unsigned granted;
    enum step step;
    bool decided;
};

struct node {
    struct load *load;
    const char *uri;
    redisContext *context; /* made the connection, and owns the descriptor */
    struct event *readable;
    struct event *writable; /* pending while `output` has bytes */
    struct buffer input;
    struct buffer output; /* bytes that the socket did not accept */
    uint64_t next;        /* round of the next reply */
};

struct load {
    struct cycles *cycles;
    unsigned quorum;
    size_t node_count;
    struct node *nodes;
    struct floor_slot *slots;
    char ttl[24];
    size_t ttl_length;
    char sha[FLOOR_SHA_LENGTH + 1];

    struct round *ring; /* its size is a power of two */
    size_t ring_size;
    uint64_t first; /* oldest round that awaits a reply */
    uint64_t end;

    struct event *turn_end;
    struct buffer turn; /* commands of this turn */
    size_t *releases;   /* slots to release at the end of the turn */
    size_t release_count;
};

static void reserve(struct buffer *buffer, size_t more) {
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : READ_SIZE;

    while (capacity - buffer->length < more) {
        capacity *= 2;
    }
    if (capacity != buffer->capacity) {
        buffer->data = realloc(buffer->data, capacity);
        if (buffer->data == NULL) {
            memory_end();
        }
        buffer->capacity = capacity;
    }
}

static void append(struct buffer *buffer, const void *bytes, size_t length) {
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

static void drop(struct buffer *buffer, size_t length) {
    memmove(buffer->data, buffer->data + length, buffer->length - length);
    buffer->length -= length;
}

/* ----------------------------------------------------------------------------------- the rounds */

static struct round *round_at(const struct load *load, uint64_t number) {
    return &load->ring[number & (load->ring_size - 1)];
}

static void enlarge_ring(struct load *load) {
    size_t size = load->ring_size > 0 ? 2 * load->ring_size : FIRST_RING;
    struct round *ring = memory_take(size, sizeof(*ring));

    for (uint64_t i = load->first; i < load->end; i++) {
        ring[i & (size - 1)] = *round_at(load, i);
    }
    free(load->ring);
    load->ring = ring;
    load->ring_size = size;
}

static void add_round(struct load *load, size_t slot, enum step step, size_t joined) {
    while (load->first < load->end && round_at(load, load->first)->awaited == 0) {
        load->first++;
    }
    if (load->end - load->first == load->ring_size) {
        enlarge_ring(load);
    }
    *round_at(load, load->end++) = (struct round){
        .slot = slot, .joined = joined, .awaited = (unsigned)load->node_count, .step = step};
}

/* Counts a reply. The caller must look up its round again: the answer may enlarge the ring. */
static void count_reply(struct load *load, struct round *round, bool granted, const char *error) {
    bool acquires = round->step == ACQUIRE;
    size_t slot = round->slot;
    bool is_won;

    round->awaited--;
    round->granted += granted;
    is_won = round->granted == load->quorum;
    if (round->decided || (!is_won && round->awaited > 0)) {
        return;
    }
    round->decided = true;
    if (acquires) {
        cycles_acquired(load->cycles, slot, is_won ? REDLOCK_OK : REDLOCK_ENOQUORUM,
                        is_won ? NULL : error);
    } else {
        cycles_released(load->cycles, slot, is_won ? NULL : error);
    }
}

/* ---------------------------------------------------------------------------------- the replies */

/* Counts a command's reply for all of its rounds: `letters` has one letter for each. */
static void take_reply(struct node *node, const char *letters, char good, const char *error) {
    struct load *load = node->load;
    size_t joined = round_at(load, node->next)->joined;

    for (size_t i = 0; i < joined; i++) {
        struct round *round = round_at(load, node->next++);

        count_reply(load, round, letters != NULL && letters[i] == good, error);
    }
}

/* Reads the reply at `at`. Returns its length; 0: incomplete. */
static size_t take_line(struct node *node, char *at, size_t length) {
    char *end = memchr(at, '\n', length);
    size_t line;

    if (end == NULL) {
        return 0;
    }
    line = (size_t)(end - at) + 1;
    if (node->next == node->load->end) {
        floor_die(node->uri, "a reply to no command");
    }
    if (at[0] == '+') { /* OK */
        take_reply(node, at + 1, 'O', "no quorum");
    } else if (at[0] == '-') {
        end[-1] = '\0';
        take_reply(node, NULL, 0, at + 1);
    } else if (at[0] == '$' && at[1] == '-') {
        take_reply(node, NULL, 0, "no quorum");
    } else if (at[0] == '$') {
        size_t letters = strtoull(at + 1, NULL, 10);

        if (length < line + letters + 2) {
            return 0;
        }
        if (letters != round_at(node->load, node->next)->joined) {
            floor_die(node->uri, "unexpected reply");
        }
        take_reply(node, end + 1, 'y', "no quorum");
        line += letters + 2;
    } else {
        floor_die(node->uri, "unexpected reply");
    }
    return line;
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
    struct node *node = arg;
    size_t taken = 0;
    size_t length;
    ssize_t got;

    (void)what;
    reserve(&node->input, READ_SIZE);
    got =
        read(fd, node->input.data + node->input.length, node->input.capacity - node->input.length);
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0) {
        floor_die(node->uri, "the connection ended");
    }
    node->input.length += (size_t)got;
    while ((length = take_line(node, node->input.data + taken, node->input.length - taken)) > 0) {
        taken += length;
    }
    drop(&node->input, taken);
}

/* --------------------------------------------------------------------------------- the commands */

static void on_writable(evutil_socket_t fd, short what, void *arg) {
    struct node *node = arg;
    ssize_t written = write(fd, node->output.data, node->output.length);

    (void)what;
    if (written < 0 && errno != EAGAIN) {
        floor_die(node->uri, strerror(errno));
    }
    drop(&node->output, written > 0 ? (size_t)written : 0);
    if (node->output.length == 0) {
        event_del(node->writable);
    }
}

/* Writes the turn's commands; bytes that the socket does not accept are written later. */
static void write_to(struct node *node, const struct buffer *turn) {
    ssize_t written = 0;

    if (node->output.length == 0) {
        written = write(node->context->fd, turn->data, turn->length);
        if (written < 0 && errno != EAGAIN) {
            floor_die(node->uri, strerror(errno));
        }
        written = written < 0 ? 0 : written;
    }
    if ((size_t)written < turn->length) {
        append(&node->output, turn->data + written, turn->length - (size_t)written);
        if (event_add(node->writable, NULL) != 0) {
            floor_die(node->uri, "cannot wait for the socket");
        }
    }
}

static void add_word(struct buffer *buffer, const char *word, size_t length) {
    reserve(buffer, length + 32);
    buffer->length += (size_t)snprintf(buffer->data + buffer->length, 32, "$%zu\r\n", length);
    append(buffer, word, length);
    append(buffer, "\r\n", 2);
}

/* Adds the call that releases these slots' locks. */
static void join_releases(struct load *load, const size_t *slots, size_t count) {
    struct buffer *turn = &load->turn;
    char number[24];

    reserve(turn, COMMAND_ROOM);
    turn->length += (size_t)snprintf(turn->data + turn->length, COMMAND_ROOM,
                                     "*%zu\r\n$7\r\nEVALSHA\r\n", 3 + 2 * count);
    add_word(turn, load->sha, FLOOR_SHA_LENGTH);
    add_word(turn, number, (size_t)snprintf(number, sizeof(number), "%zu", count));
    for (size_t i = 0; i < count; i++) {
        add_word(turn, load->slots[slots[i]].key, load->slots[slots[i]].key_length);
    }
    for (size_t i = 0; i < count; i++) {
        add_word(turn, load->slots[slots[i]].token, FLOOR_TOKEN_LENGTH);
        add_round(load, slots[i], RELEASE, i == 0 ? count : 1);
    }
}

static void on_turn_end(evutil_socket_t fd, short what, void *arg) {
    struct load *load = arg;

    (void)fd;
    (void)what;
    for (size_t i = 0; i < load->release_count; i += JOINED_MAX) {
        size_t rest = load->release_count - i;

        join_releases(load, load->releases + i, rest < JOINED_MAX ? rest : JOINED_MAX);
    }
    load->release_count = 0;
    for (size_t i = 0; i < load->node_count; i++) {
        write_to(&load->nodes[i], &load->turn);
    }
    load->turn.length = 0;
}

/* Creates a token from random bytes, which are fetched many at a time. */
static void make_token(struct floor_slot *slot) {
    static _Thread_local unsigned char pool[256 * FLOOR_TOKEN_LENGTH / 2];
    static _Thread_local size_t used = sizeof(pool);

    if (used == sizeof(pool)) {
        randombytes_buf(pool, sizeof(pool));
        used = 0;
    }
    sodium_bin2hex(slot->token, sizeof(slot->token), pool + used, FLOOR_TOKEN_LENGTH / 2);
    used += FLOOR_TOKEN_LENGTH / 2;
}

static const char *acquire(struct load *load, size_t index) {
    static const char begin[] = "*6\r\n$3\r\nSET\r\n";
    static const char options[] = "$2\r\nNX\r\n$2\r\nPX\r\n";
    struct floor_slot *slot = &load->slots[index];

    make_token(slot);
    append(&load->turn, begin, sizeof(begin) - 1);
    add_word(&load->turn, slot->key, slot->key_length);
    add_word(&load->turn, slot->token, FLOOR_TOKEN_LENGTH);
    append(&load->turn, options, sizeof(options) - 1);
    add_word(&load->turn, load->ttl, load->ttl_length);
    add_round(load, index, ACQUIRE, 1);
    event_active(load->turn_end, EV_TIMEOUT, 0);
    return NULL;
}

static const char *release(struct load *load, size_t index) {
    load->releases[load->release_count++] = index;
    event_active(load->turn_end, EV_TIMEOUT, 0);
    return NULL;
}

/* ------------------------------------------------------------------------------------ the nodes */

static redisContext *open_connection(const char *uri) {
    struct address address = floor_address(uri);
    redisContext *context;

    context = address.path != NULL ? redisConnectUnix(address.path)
                                   : redisConnect(address.host, address.port);
    if (context == NULL || context->err != 0) {
        floor_die(uri, context != NULL ? context->errstr : "out of memory");
    }
    return context;
}

static void connect_node(struct node *node, struct event_base *base) {
    redisReply *reply;
    int flags;

    node->context = open_connection(node->uri);
    reply = redisCommand(node->context, "SCRIPT LOAD %s", release_script);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != FLOOR_SHA_LENGTH) {
        floor_die(node->uri, reply != NULL && reply->type == REDIS_REPLY_ERROR
                                 ? reply->str
                                 : "unexpected reply");
    }
    memcpy(node->load->sha, reply->str, FLOOR_SHA_LENGTH);
    freeReplyObject(reply);
    flags = fcntl(node->context->fd, F_GETFL);
    if (flags < 0 || fcntl(node->context->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        floor_die(node->uri, strerror(errno));
    }
    node->readable = event_new(base, node->context->fd, EV_READ | EV_PERSIST, on_readable, node);
    node->writable = event_new(base, node->context->fd, EV_WRITE | EV_PERSIST, on_writable, node);
    if (node->readable == NULL || node->writable == NULL || event_add(node->readable, NULL) != 0) {
        floor_die(node->uri, "cannot wait for replies");
    }
}

/* ------------------------------------------------------------------------------------- the load */

static struct load *create(const struct load_settings *settings) {
    struct load *load = memory_take(1, sizeof(*load));

    load->cycles = settings->cycles;
    load->quorum = (unsigned)settings->node_count / 2 + 1;
    load->node_count = settings->node_count;
    load->ttl_length = (size_t)snprintf(load->ttl, sizeof(load->ttl), "%" PRIu64, settings->ttl_ms);
    load->nodes = memory_take(settings->node_count, sizeof(*load->nodes));
    load->turn_end = clock_timer(settings->base, on_turn_end, load);
    load->slots = floor_slots(settings->first_slot, settings->slot_count);
    load->releases = memory_take(settings->slot_count, sizeof(*load->releases));
    for (size_t i = 0; i < settings->node_count; i++) {
        load->nodes[i].load = load;
        load->nodes[i].uri = settings->nodes[i];
        connect_node(&load->nodes[i], settings->base);
    }
    return load;
}

/* Always true: connections are made before the load exists. */
static bool is_ready(struct load *load, FILE *complaints) {
    (void)load;
    (void)complaints;
    return true;
}

static void close_load(struct load *load) {
    struct cycles *cycles = load->cycles;

    for (size_t i = 0; i < load->node_count; i++) {
        struct node *node = &load->nodes[i];

        event_free(node->readable);
        event_free(node->writable);
        redisFree(node->context);
        free(node->input.data);
        free(node->output.data);
    }
    event_free(load->turn_end);
    free(load->turn.data);
    free(load->releases);
    free(load->slots);
    free(load->nodes);
    free(load->ring);
    free(load);
    cycles_closed(cycles);
}

const struct load_kind epoll_load = {
    .name = "epoll",
    .create = create,
    .is_ready = is_ready,
    .acquire = acquire,
    .release = release,
    .close = close_load,
};
