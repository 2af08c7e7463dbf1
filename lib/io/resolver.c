/*
 * Each lookup has its own evdns base, so that it uses the system's current settings even while an
 * earlier lookup hangs with older ones. evdns may still access a base after the callback, from
 * events left in the loop; so a timer frees the base a little later, and the lookup is pending
 * until then.
 */
#include "io/resolver.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "io/clock.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct lookup {
    struct resolver *resolver;
    struct evdns_base *dns;
    struct evdns_getaddrinfo_request *request; /* NULL until evdns has returned it */
    struct timer end;     /* fires when evdns has no events of the lookup left in the loop */
    resolver_cb *on_done; /* NULL: canceled */
    void *arg;
    bool is_done; /* whether evdns has called back */
};

void resolver_init(struct resolver *resolver, redlock_loop *loop,
                   const redlock_allocator *allocator) {
    *resolver = (struct resolver){.loop = loop, .allocator = allocator};
}

bool resolver_is_numeric(const char *host) {
    struct in6_addr address;
    return evutil_inet_pton(AF_INET, host, &address) == 1 ||
           evutil_inet_pton(AF_INET6, host, &address) == 1;
}

/* ---- the life of a lookup ---- */

static void destroy_lookup(struct lookup *lookup) {
    const redlock_allocator *allocator = lookup->resolver->allocator;
    timer_finish(&lookup->end);
    if (lookup->dns != NULL) {
        evdns_base_free(lookup->dns, 0);
    }
    memory_free(allocator, lookup);
}

static void on_end(void *arg) {
    struct lookup *lookup = arg;
    lookup->resolver->pending--;
    destroy_lookup(lookup);
}

static struct evdns_base *make_dns(const redlock_loop *loop) {
    struct evdns_base *dns =
        evdns_base_new(loop_event_base(loop), EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    if (dns != NULL) {
        /* Without this file there are no name servers, but /etc/hosts is still used. */
        evdns_base_resolv_conf_parse(dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
        /* Disable probes: a single lookup has no use for a name server that comes back, and the
           answer to a probe would reach a freed base. */
        evdns_base_set_option(dns, "initial-probe-timeout:", "3600");
    }
    return dns;
}

static struct lookup *create_lookup(struct resolver *resolver, resolver_cb *on_done, void *arg) {
    struct lookup *lookup = memory_zalloc(resolver->allocator, sizeof(*lookup));
    if (lookup == NULL) {
        return NULL;
    }
    lookup->resolver = resolver;
    lookup->on_done = on_done;
    lookup->arg = arg;
    timer_init(&lookup->end, resolver->loop, on_end, lookup);
    lookup->dns = make_dns(resolver->loop);
    if (lookup->dns == NULL) {
        destroy_lookup(lookup);
        return NULL;
    }
    return lookup;
}

/* ---- answers ---- */

/* Adds an address. Returns false when the list is full. */
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

static void report_result(const struct lookup *lookup, int result,
                          const struct evutil_addrinfo *found) {
    struct addresses addresses = {0};
    for (; result == 0 && found != NULL && add_address(&addresses, found); found = found->ai_next) {
    }
    lookup->on_done(lookup->arg, addresses.count > 0 ? &addresses : NULL,
                    result != 0 ? evutil_gai_strerror(result) : "the name has no address");
}

/*
 * Reports the result, and ends the lookup 1 ms later: by then the events that evdns left in the
 * loop have run, because they are due at once.
 */
static void on_answer(int result, struct evutil_addrinfo *addresses, void *arg) {
    struct lookup *lookup = arg;
    lookup->is_done = true;
    timer_set(&lookup->end, nanos_add(clock_now(), NANOS_PER_MS));
    if (lookup->on_done != NULL) {
        report_result(lookup, result, addresses);
    }
    if (addresses != NULL) {
        evutil_freeaddrinfo(addresses);
    }
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg) {
    if (loop_event_base(resolver->loop) == NULL) {
        on_done(arg, NULL, "names are resolved on libevent's loop only; give its address");
        return NULL;
    }
    struct lookup *lookup = create_lookup(resolver, on_done, arg);
    if (lookup == NULL) {
        on_done(arg, NULL, "out of memory");
        return NULL;
    }
    resolver->pending++;
    const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    lookup->request = evdns_getaddrinfo(lookup->dns, host, NULL, &hints, on_answer, lookup);
    if (lookup->request == NULL && !lookup->is_done) {
        on_answer(EVUTIL_EAI_MEMORY, NULL, lookup); /* evdns gave up without calling back */
    }
    return lookup->is_done ? NULL : lookup;
}

void lookup_cancel(struct lookup *lookup) {
    if (lookup != NULL) {
        lookup->on_done = NULL;
        evdns_getaddrinfo_cancel(lookup->request);
    }
}
