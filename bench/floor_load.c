/*
 * The floor: the cost of the commands alone, with hiredis and its own libevent adapter, and no code
 * around them but the counting to a quorum. No deadlines, no reconnecting, no release after a
 * failure: a lost connection ends the program.
 *
 * A round lives until its last reply, which may come long after the quorum, so that a late reply to
 * one round is never counted in the next.
 */
#include "address.h"
#include "load.h"

#include <event2/event.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
/* Needs async.h and event.h before it. */
#include <hiredis/adapters/libevent.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define TOKEN_BYTES 20
#define SHA_LENGTH 40
#define TEXT(value) TEXT_OF(value)
#define TEXT_OF(value) #value

/* The release script of the Redis documentation. */
static const char release_script[] = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                                     "return redis.call(\"del\",KEYS[1]) else return 0 end";

enum step { ACQUIRE, RELEASE };

struct slot {
    char key[LOAD_KEY_SIZE];
    size_t key_length;
    char token[2 * TOKEN_BYTES + 1];
};

struct round {
    SLIST_ENTRY(round) link; /* while unused */
    struct load *load;
    size_t slot;
    enum step step;
    size_t awaited; /* number of replies to come */
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
    struct measure *measure;
    bool closing;
    size_t quorum;
    size_t node_count;
    struct node *nodes;
    struct slot *slots;
    SLIST_HEAD(, round) unused;
    char sha[SHA_LENGTH + 1];
};

static _Noreturn void die(const char *uri, const char *what) {
    fprintf(stderr, "redlock-bench: %s: %s\n", uri, what);
    exit(EXIT_FAILURE);
}

/* ----------------------------------------------------------------------------------- the rounds */

static struct round *take_round(struct load *load) {
    struct round *round = SLIST_FIRST(&load->unused);

    if (round != NULL) {
        SLIST_REMOVE_HEAD(&load->unused, link);
        return round;
    }
    round = malloc(sizeof(*round));
    if (round == NULL) {
        die("floor", "out of memory");
    }
    return round;
}

static void decide(struct round *round, const char *error) {
    round->decided = true;
    if (round->step == ACQUIRE) {
        measure_acquired(round->load->measure, round->slot, error);
    } else {
        measure_released(round->load->measure, round->slot, error);
    }
}

static bool is_granted(const struct round *round, const redisReply *reply) {
    if (round->step == ACQUIRE) {
        return reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
    }
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

/* Counts a reply. A NULL reply comes when the connection is closed: no round waits then. */
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
            die(node->uri, "cannot send a command");
        }
        round->awaited++;
    }
}

static const char *acquire(struct load *load, size_t index) {
    struct slot *slot = &load->slots[index];
    const char *argv[] = {"SET", slot->key, slot->token, "NX", "PX", TEXT(LOAD_TTL_MS)};
    const size_t lengths[] = {3, slot->key_length, 2 * TOKEN_BYTES, 2, 2, strlen(argv[5])};
    unsigned char token[TOKEN_BYTES];

    randombytes_buf(token, sizeof(token));
    sodium_bin2hex(slot->token, sizeof(slot->token), token, sizeof(token));
    send_round(load, index, ACQUIRE, 6, argv, lengths);
    return NULL;
}

static const char *release(struct load *load, size_t index) {
    struct slot *slot = &load->slots[index];
    const char *argv[] = {"EVALSHA", load->sha, "1", slot->key, slot->token};
    const size_t lengths[] = {7, SHA_LENGTH, 1, slot->key_length, 2 * TOKEN_BYTES};

    send_round(load, index, RELEASE, 5, argv, lengths);
    return NULL;
}

/* ------------------------------------------------------------------------------------ the nodes */

static void on_connected(const redisAsyncContext *context, int status) {
    const struct node *node = context->data;

    if (status != REDIS_OK) {
        die(node->uri, context->errstr);
    }
}

static void on_disconnected(const redisAsyncContext *context, int status) {
    const struct node *node = context->data;

    (void)status;
    if (!node->load->closing) {
        die(node->uri, context->err != 0 ? context->errstr : "the connection ended");
    }
}

static void on_script_loaded(redisAsyncContext *context, void *answer, void *arg) {
    const redisReply *reply = answer;
    struct node *node = arg;

    (void)context;
    if (reply == NULL) {
        return; /* on_connected or on_disconnected reports the cause */
    }
    if (reply->type != REDIS_REPLY_STRING || reply->len != SHA_LENGTH) {
        die(node->uri, reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
    }
    memcpy(node->load->sha, reply->str, SHA_LENGTH);
    node->ready = true;
}

/* Begins to connect. */
static redisAsyncContext *start_connecting(const char *uri) {
    struct address address;
    const char *problem = address_parse(&address, uri);

    if (problem != NULL) {
        die(uri, problem);
    }
    return address.path != NULL ? redisAsyncConnectUnix(address.path)
                                : redisAsyncConnect(address.host, address.port);
}

static void connect_node(struct node *node, struct event_base *base) {
    node->context = start_connecting(node->uri);
    if (node->context == NULL) {
        die(node->uri, "out of memory");
    }
    if (node->context->err != 0) {
        die(node->uri, node->context->errstr);
    }
    node->context->data = node;
    if (redisLibeventAttach(node->context, base) != REDIS_OK ||
        redisAsyncSetConnectCallback(node->context, on_connected) != REDIS_OK ||
        redisAsyncSetDisconnectCallback(node->context, on_disconnected) != REDIS_OK ||
        redisAsyncCommand(node->context, on_script_loaded, node, "SCRIPT LOAD %s",
                          release_script) != REDIS_OK) {
        die(node->uri, "cannot connect");
    }
}

/* ------------------------------------------------------------------------------------- the load */

static struct load *create(const struct load_settings *settings) {
    struct load *load = calloc(1, sizeof(*load));

    if (load == NULL || sodium_init() < 0) {
        die("floor", "out of memory, or no random numbers");
    }
    load->measure = settings->measure;
    load->quorum = settings->node_count / 2 + 1;
    load->node_count = settings->node_count;
    load->nodes = calloc(settings->node_count, sizeof(*load->nodes));
    load->slots = calloc(settings->slot_count, sizeof(*load->slots));
    if (load->nodes == NULL || load->slots == NULL) {
        die("floor", "out of memory");
    }
    SLIST_INIT(&load->unused);
    for (size_t i = 0; i < settings->slot_count; i++) {
        load_format_key(load->slots[i].key, i);
        load->slots[i].key_length = strlen(load->slots[i].key);
    }
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
    struct measure *measure = load->measure;

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
    measure_closed(measure);
}

const struct load_kind floor_load = {
    .name = "floor",
    .create = create,
    .is_ready = is_ready,
    .acquire = acquire,
    .release = release,
    .close = close_load,
};
