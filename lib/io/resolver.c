#include "io/resolver.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct lookup {
    struct resolver *resolver;
    struct evdns_getaddrinfo_request *request; /* NULL until evdns has returned it */
    resolver_cb *on_done;                      /* NULL: canceled */
    void *arg;
    unsigned turn;
    bool is_done;     /* the answer came before evdns returned */
    bool is_starting; /* evdns has not returned yet */
};

void resolver_init(struct resolver *resolver, const struct loop *loop) {
    *resolver = (struct resolver){.loop = loop};
}

void resolver_finish(struct resolver *resolver) {
    if (resolver->dns != NULL) {
        evdns_base_free(resolver->dns, 0);
        resolver->dns = NULL;
    }
}

bool resolver_is_numeric(const char *host) {
    struct in6_addr address;
    return evutil_inet_pton(AF_INET, host, &address) == 1 ||
           evutil_inet_pton(AF_INET6, host, &address) == 1;
}

static bool make_dns(struct resolver *resolver) {
    if (resolver->dns == NULL) {
        resolver->dns = evdns_base_new(resolver->loop->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
        if (resolver->dns != NULL) {
            /* Without the file there are no name servers, but /etc/hosts still counts. */
            evdns_base_resolv_conf_parse(resolver->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
        }
    }
    return resolver->dns != NULL;
}

static const struct evutil_addrinfo *pick(const struct evutil_addrinfo *addresses, unsigned turn) {
    unsigned count = 0;
    for (const struct evutil_addrinfo *a = addresses; a != NULL; a = a->ai_next) {
        count++;
    }
    for (turn = count > 0 ? turn % count : 0; turn > 0; turn--) {
        addresses = addresses->ai_next;
    }
    return addresses;
}

static const char *numeric(const struct evutil_addrinfo *address, char text[INET6_ADDRSTRLEN]) {
    if (address == NULL) {
        return NULL;
    }
    const void *bytes = address->ai_family == AF_INET6
                            ? (const void *)&((struct sockaddr_in6 *)address->ai_addr)->sin6_addr
                            : (const void *)&((struct sockaddr_in *)address->ai_addr)->sin_addr;
    return evutil_inet_ntop(address->ai_family, bytes, text, INET6_ADDRSTRLEN);
}

static void on_answer(int result, struct evutil_addrinfo *addresses, void *arg) {
    struct lookup *lookup = arg;
    struct resolver *resolver = lookup->resolver;
    char text[INET6_ADDRSTRLEN];
    resolver->pending--;
    if (lookup->on_done != NULL) {
        const char *address = result == 0 ? numeric(pick(addresses, lookup->turn), text) : NULL;
        lookup->on_done(lookup->arg, address,
                        result != 0 ? evutil_gai_strerror(result) : "the name has no address");
    }
    if (addresses != NULL) {
        evutil_freeaddrinfo(addresses);
    }
    lookup->is_done = true;
    if (!lookup->is_starting) {
        memory_free(resolver->loop->allocator, lookup);
    }
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, unsigned turn,
                              resolver_cb *on_done, void *arg) {
    struct lookup *lookup = memory_zalloc(resolver->loop->allocator, sizeof(*lookup));
    if (lookup == NULL || !make_dns(resolver)) {
        memory_free(resolver->loop->allocator, lookup);
        on_done(arg, NULL, "out of memory");
        return NULL;
    }
    lookup->resolver = resolver;
    lookup->on_done = on_done;
    lookup->arg = arg;
    lookup->turn = turn;
    lookup->is_starting = true;
    resolver->pending++;
    const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    lookup->request = evdns_getaddrinfo(resolver->dns, host, NULL, &hints, on_answer, lookup);
    if (lookup->request == NULL && !lookup->is_done) {
        on_answer(EVUTIL_EAI_MEMORY, NULL, lookup); /* evdns gave up without a word */
    }
    lookup->is_starting = false;
    if (lookup->is_done) {
        memory_free(resolver->loop->allocator, lookup);
        return NULL;
    }
    return lookup;
}

void lookup_cancel(struct lookup *lookup) {
    if (lookup != NULL) {
        lookup->on_done = NULL;
        evdns_getaddrinfo_cancel(lookup->request);
    }
}
