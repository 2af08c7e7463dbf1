#include "detour.h"

struct detour take_detour(struct fixture *f) {
    struct detour detour = {.client = NULL};
    const char *uris[DETOUR_MASTERS_MAX];
    size_t count = masters_count(f->masters);
    redlock_options options;

    assert_int_in_range(count, 1, DETOUR_MASTERS_MAX);
    proxies_create(f, detour.proxies, uris);
    options = patient_options(f, uris, count);
    detour.client = connect_with(f, &options);
    return detour;
}

void go_away(struct fixture *f, const struct detour *detour, size_t node) {
    uint64_t before = node_info(detour->client, node).disconnected;

    proxy_refuse(detour->proxies[node]);
    proxy_cut(detour->proxies[node]);
    wait_disconnected(f, detour->client, node, before + 1);
}
