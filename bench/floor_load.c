/*
 * The floor: the cost of the commands alone, with hiredis and its own libevent adapter, and no code
 * around them except counting to a quorum. No deadlines, no reconnects, no release after a failure:
 * a lost connection ends the program.
 *
 * A round lives until its last reply, which may come long after the quorum, so that a late reply to
 * one round never counts in the next.
 */
#include "floor.h"
#include "memory.h"

#include <event2/event.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
/* Must come after async.h and event.h. */
#include <hiredis/adapters/libevent.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define TOKEN_BYTES (FLOOR_TOKEN_LENGTH / 2)

/* The release script of the Redis documentation. */
static const char release_script[] = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                                     "return redis.call(\"del\",KEYS[1]) else return 0 end";

enum step { ACQUIRE, RELEASE };

struct round {
    SLIST_ENTRY(round) link; /* while unused */
    struct load *load;
    size_t slot;
    enum step step;
    size_t awaited; /* number of outstanding replies */
    size_t granted;
    bool decided;
};

struct node {
    struct load *load;
    const char *uri;
    redisAsyncContext *context;
    bool ready; /* whether the script is loaded */
};

struct load {
    struct cycles *cycles;
    bool closing;
    size_t quorum;
    size_t node_count;
    struct node *nodes;
    struct floor_slot *slots;
    SLIST_HEAD(, round) unused;
    char ttl[24];
    size_t ttl_length;
    char sha[FLOOR_SHA_LENGTH + 1];
};

/* ----------------------------------------------------------------------------------- the rounds */

static struct round *take_round(struct load *load) {
    struct round *round = SLIST_FIRST(&load->unused);

    if (round != NULL) {
        SLIST_REMOVE_HEAD(&load->unused, link);
        return round;
    }
    return memory_take(1, sizeof(*round));
}

static void decide(struct round *round, const char *error) {
    round->decided = true;
    if (round->step == ACQUIRE) {
        cycles_acquired(round->load->cycles, round->slot,
                        error == NULL ? REDLOCK_OK : REDLOCK_ENOQUORUM, error);
    } else {
        cycles_released(round->load->cycles, round->slot, error);
    }
}

static bool is_granted(const struct round *round, const redisReply *reply) {
    if (round->step == ACQUIRE) {
        return reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
    }
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

/* Counts a reply. A NULL reply means that the connection is closed: then no round waits. */
static void on_reply(redisAsyncContext *context, void *answer, void *arg) {
    const redisReply *reply = answer;
    struct round *round = arg;

    (void)context;
    round->awaited--;
    if (reply != NULL && is_granted(round, reply)) {
        round->granted++;
    }
    if (!round->decided && !round->load->closing) {
        if (round->granted == round->load->quorum) {
            decide(round, NULL);
        } else if (round->awaited == 0) {
            decide(round,
                   reply != NULL && reply->type == REDIS_REPLY_ERROR ? reply->str : "no quorum");
        }
    }
    if (round->awaited == 0) {
        SLIST_INSERT_HEAD(&round->load->unused, round, link);
    }
}

static void send_round(struct load *load, size_t slot, enum step step, int argc, const char **argv,
                       const size_t *lengths) {
    struct round *round = take_round(load);

    *round = (struct round){.load = load, .slot = slot, .step = step};
    for (size_t i = 0; i < load->node_count; i++) {
        struct node *node = &load->nodes[i];

        if (redisAsyncCommandArgv(node->context, on_reply, round, argc, argv, lengths) !=
            REDIS_OK) {
            floor_die(node->uri, "cannot send a command");
        }
        round->awaited++;
    }
}

static const char *acquire(struct load *load, size_t index) {
    struct floor_slot *slot = &load->slots[index];
    const char *argv[] = {"SET", slot->key, slot->token, "NX", "PX", load->ttl};
    const size_t lengths[] = {3, slot->key_length, FLOOR_TOKEN_LENGTH, 2, 2, load->ttl_length};
    unsigned char token[TOKEN_BYTES];

    randombytes_buf(token, sizeof(token));
    sodium_bin2hex(slot->token, sizeof(slot->token), token, sizeof(token));
    send_round(load, index, ACQUIRE, 6, argv, lengths);
    return NULL;
}

static const char *release(struct load *load, size_t index) {
    struct floor_slot *slot = &load->slots[index];
    const char *argv[] = {"EVALSHA", load->sha, "1", slot->key, slot->token};
    const size_t lengths[] = {7, FLOOR_SHA_LENGTH, 1, slot->key_length, FLOOR_TOKEN_LENGTH};

    send_round(load, index, RELEASE, 5, argv, lengths);
    return NULL;
}

/* ------------------------------------------------------------------------------------ the nodes */

static void on_connected(const redisAsyncContext *context, int status) {
    const struct node *node = context->data;

    if (status != REDIS_OK) {
        floor_die(node->uri, context->errstr);
    }
}

static void on_disconnected(const redisAsyncContext *context, int status) {
    const struct node *node = context->data;

    (void)status;
    if (!node->load->closing) {
        floor_die(node->uri, context->err != 0 ? context->errstr : "the connection ended");
    }
}

static void on_script_loaded(redisAsyncContext *context, void *answer, void *arg) {
    const redisReply *reply = answer;
    struct node *node = arg;

    (void)context;
    if (reply == NULL) {
        return; /* on_connected or on_disconnected reports the cause */
    }
    if (reply->type != REDIS_REPLY_STRING || reply->len != FLOOR_SHA_LENGTH) {
        floor_die(node->uri, reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
    }
    memcpy(node->load->sha, reply->str, FLOOR_SHA_LENGTH);
    node->ready = true;
}

/* Starts to connect. */
static redisAsyncContext *start_connecting(const char *uri) {
    struct address address = floor_address(uri);

    return address.path != NULL ? redisAsyncConnectUnix(address.path)
                                : redisAsyncConnect(address.host, address.port);
}

static void connect_node(struct node *node, struct event_base *base) {
    node->context = start_connecting(node->uri);
    if (node->context == NULL) {
        floor_die(node->uri, "out of memory");
    }
    if (node->context->err != 0) {
        floor_die(node->uri, node->context->errstr);
    }
    node->context->data = node;
    if (redisLibeventAttach(node->context, base) != REDIS_OK ||
        redisAsyncSetConnectCallback(node->context, on_connected) != REDIS_OK ||
        redisAsyncSetDisconnectCallback(node->context, on_disconnected) != REDIS_OK ||
        redisAsyncCommand(node->context, on_script_loaded, node, "SCRIPT LOAD %s",
                          release_script) != REDIS_OK) {
        floor_die(node->uri, "cannot connect");
    }
}

/* ------------------------------------------------------------------------------------- the load */

static struct load *create(const struct load_settings *settings) {
    struct load *load = memory_take(1, sizeof(*load));

    load->cycles = settings->cycles;
    load->quorum = settings->node_count / 2 + 1;
    load->node_count = settings->node_count;
    load->nodes = memory_take(settings->node_count, sizeof(*load->nodes));
    load->slots = floor_slots(settings->first_slot, settings->slot_count);
    load->ttl_length = (size_t)snprintf(load->ttl, sizeof(load->ttl), "%" PRIu64, settings->ttl_ms);
    SLIST_INIT(&load->unused);
    for (size_t i = 0; i < settings->node_count; i++) {
        load->nodes[i].load = load;
        load->nodes[i].uri = settings->nodes[i];
        connect_node(&load->nodes[i], settings->base);
    }
    return load;
}

static bool is_ready(struct load *load, FILE *complaints) {
    bool ready = true;

    for (size_t i = 0; i < load->node_count; i++) {
        if (!load->nodes[i].ready) {
            ready = false;
            if (complaints != NULL) {
                fprintf(complaints, "redlock-bench: %s is not connected\n", load->nodes[i].uri);
            }
        }
    }
    return ready;
}

static void close_load(struct load *load) {
    struct cycles *cycles = load->cycles;

    load->closing = true;
    for (size_t i = 0; i < load->node_count; i++) {
        redisAsyncFree(load->nodes[i].context);
    }
    while (!SLIST_EMPTY(&load->unused)) {
        struct round *round = SLIST_FIRST(&load->unused);

        SLIST_REMOVE_HEAD(&load->unused, link);
        free(round);
    }
    free(load->slots);
    free(load->nodes);
    free(load);
    cycles_closed(cycles);
}

const struct load_kind floor_load = {
    .name = "floor",
    .create = create,
    .is_ready = is_ready,
    .acquire = acquire,
    .release = release,
    .close = close_load,
};
