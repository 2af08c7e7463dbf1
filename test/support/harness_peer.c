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

bool peer_has_reached(void *arg) {
    const struct peer_wait *wait = arg;

    return wait->number(wait->peer) >= wait->least;
}

void wait_peer_links(struct fixture *f, struct peer *peer, size_t count) {
    struct peer_wait wait = {peer_links, peer, count};

    run_until(f, peer_has_reached, &wait, "the peer was connected to so often");
}

void wait_peer_commands(struct fixture *f, struct peer *peer, size_t count) {
    struct peer_wait wait = {peer_commands, peer, count};

    run_until(f, peer_has_reached, &wait, "the peer has read so many commands");
}
