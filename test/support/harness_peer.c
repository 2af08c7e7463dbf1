#include "harness_peer.h"

static void destroy(void *peer) {
    peer_destroy(peer);
}

struct peer *peer_create(struct fixture *f, peer_answer *answer, void *arg) {
    struct peer *peer = peer_listen(f->base, answer, arg);

    at_finish(f, destroy, peer);
    return peer;
}

struct peer *peer_create_unix(struct fixture *f, peer_answer *answer, void *arg) {
    struct peer *peer = peer_listen_unix(f->base, folder_for(f, "peer"), answer, arg);

    at_finish(f, destroy, peer);
    return peer;
}

struct wanted {
    const struct peer *peer;
    size_t count;
};

static bool has_links(void *arg) {
    const struct wanted *wanted = arg;

    return peer_links(wanted->peer) >= wanted->count;
}

void wait_peer_links(struct fixture *f, struct peer *peer, size_t count) {
    struct wanted wanted = {peer, count};

    run_until(f, has_links, &wanted, "the peer was connected to so often");
}

static bool has_commands(void *arg) {
    const struct wanted *wanted = arg;

    return peer_commands(wanted->peer) >= wanted->count;
}

void wait_peer_commands(struct fixture *f, struct peer *peer, size_t count) {
    struct wanted wanted = {peer, count};

    run_until(f, has_commands, &wanted, "the peer has read so many commands");
}
