#include "script_server.h"

#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define START_MS UINT64_C(1700000000000)

static uint64_t read_clock(const void *owner) {
    const struct script_server *server = owner;
    return server->now_ms * 1000000;
}

static unsigned subscribers(const void *owner, const struct word *channel) {
    (void)owner;
    return word_is(channel, DEAF) ? 0 : 1;
}

static struct script_server *the_server; /* store.h passes its owner as const */

static unsigned publish(const void *owner, const struct word *channel, const struct word *text) {
    (void)owner;
    snprintf(the_server->last_push, sizeof(the_server->last_push), "%.*s", (int)text->length,
             text->text);
    if (the_server->pushes++ == 0) {
        memcpy(the_server->first_push, the_server->last_push, sizeof(the_server->first_push));
    }
    return subscribers(owner, channel);
}

void script_server_start(struct script_server *server) {
    *server = (struct script_server){.now_ms = START_MS};
    the_server = server;
    store_init(&server->store, read_clock, server);
    server->store.publish = publish;
    server->store.subscribers = subscribers;
    server->store.scripts = UINT32_MAX;
}

struct reply script_server_run(struct script_server *server, const char *const *texts) {
    struct words words = {.count = 0};
    for (; texts[words.count] != NULL; words.count++) {
        words.word[words.count] = (struct word){texts[words.count], strlen(texts[words.count])};
    }
    return store_run(&server->store, &words);
}

const char *script_server_ticket(const struct script_server *server, char text[32]) {
    snprintf(text, 32, "%" PRIu64, server->now_ms * 1000);
    return text;
}

bool script_server_granted(const struct reply *reply) {
    assert_int_equal(reply->type, REPLY_STRING);
    return reply->text[0] == 'y';
}
