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

/* False when it is of another family, or one too many. */
static bool add_address(struct addresses *addresses, const struct evutil_addrinfo *found) {
    const struct sockaddr *address = found->ai_addr;
    const void *bytes = address->sa_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    if (addresses->count == RESOLVER_ADDRESSES_MAX) {
        return false;
    }
    char *text = addresses->list[addresses->count];
    addresses->count +=
        evutil_inet_ntop(found->ai_family, bytes, text, RESOLVER_ADDRESS_SIZE) != NULL;
    return true;
}

static void tell(const struct lookup *lookup, int result, const struct evutil_addrinfo *found) {
    struct addresses addresses = {0};
    for (; result == 0 && found != NULL && add_address(&addresses, found); found = found->ai_next) {
    }
    lookup->on_done(lookup->arg, addresses.count > 0 ? &addresses : NULL,
                    result != 0 ? evutil_gai_strerror(result) : "the name has no address");
}

static void on_answer(int result, struct evutil_addrinfo *addresses, void *arg) {
    struct lookup *lookup = arg;
    struct resolver *resolver = lookup->resolver;
    resolver->pending--;
    if (lookup->on_done != NULL) {
        tell(lookup, result, addresses);
    }
    if (addresses != NULL) {
        evutil_freeaddrinfo(addresses);
    }
    lookup->is_done = true;
    if (!lookup->is_starting) {
        memory_free(resolver->loop->allocator, lookup);
    }
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg) {
    struct lookup *lookup = memory_zalloc(resolver->loop->allocator, sizeof(*lookup));
    if (lookup == NULL || !make_dns(resolver)) {
        memory_free(resolver->loop->allocator, lookup);
        on_done(arg, NULL, "out of memory");
        return NULL;
    }
    lookup->resolver = resolver;
    lookup->on_done = on_done;
    lookup->arg = arg;
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
