/* Replaces resolver.c in builds without c-ares: refuses names. */
#include "io/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

void resolver_init(struct resolver *resolver, redlock_loop *loop,
                   const redlock_allocator *allocator) {
    *resolver = (struct resolver){.loop = loop, .allocator = allocator};
}

bool resolver_is_numeric(const char *host) {
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg) {
    (void)resolver;
    (void)host;
    on_done(arg, NULL,
            "this build of libredlock has no names: give the address, or install c-ares and build "
            "it again");
    return NULL;
}

void lookup_cancel(struct lookup *lookup) {
    (void)lookup; /* there is none */
}
