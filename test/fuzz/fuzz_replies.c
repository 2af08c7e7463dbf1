/*
 * A client with one to five nodes, about which the input decides everything: the bytes that they
 * send, in which chunks, when a connection is cut or refused, and how much time passes, while locks
 * are acquired, renewed, extended, released and canceled.
 */
#include "check.h"
#include "deeds.h"
#include "peers.h"
#include "target.h"

/* The maximum of deeds in a run: enough to reach any state, few enough for a short run. */
#define DEEDS_MAX 300

static void create(struct run *run) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    const char *nodes[PEERS_MAX];
    unsigned kind = input_byte(&run->input);
    unsigned more = input_byte(&run->input);
    run->peers = 1 + kind % PEERS_MAX;
    for (unsigned i = 0; i < run->peers; i++) {
        nodes[i] = peers_uri(i, more & 1);
    }
    options.nodes = nodes;
    options.node_count = run->peers;
    options.node_timeout_ms = more & 2 ? 50 : 5;
    options.stall_timeout_ms = more & 4 ? 1000 : 20;
    options.name = more & 8 ? NULL : "fuzz";
    options.max_commands = more & 16 ? 16 : 65536;
    options.max_bytes = more & 32 ? 4096 : 1 << 20;
    options.guards = kind / PEERS_MAX & 1 ? REDLOCK_GUARDS_ON : REDLOCK_GUARDS_OFF;
    options.log_level = more & 64 ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_WARN;
    options.allocator = &app_heap()->allocator;
    run->node_timeout_ms = options.node_timeout_ms;
    CHECK(app_make(&run->app, &options, NULL) == REDLOCK_OK);
    if (more & 128) {
        app_turn(&run->app); /* connected */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct run run;
    run.input = (struct input){data, size};
    app_begin(&run.app);
    create(&run);
    for (unsigned i = 0; i < DEEDS_MAX && run.input.left > 0 && !run.app.is_closed; i++) {
        unsigned kind = input_byte(&run.input);
        if (kind == 255) {
            app_close(&run.app);
        } else if (kind % 3 == 0) {
            deed_of_lock(&run);
        } else {
            deed_of_world(&run);
        }
    }
    app_end(&run.app, run.node_timeout_ms);
    return 0;
}
