/*
 * Names by c-ares. Each lookup has its own channel, so that it uses the system's current settings
 * even while an earlier lookup hangs with older ones. The channel asks for IPv4 and IPv6 addresses
 * at the same time; the loop watches its sockets, and a timer drives its timeouts.
 *
 * c-ares allows no channel to be destroyed in one of its callbacks. So an answer is only stored
 * there, and the timer reports it and frees the lookup; a canceled lookup is freed likewise. Until
 * then the lookup is pending.
 *
 * Without memory, or if the loop cannot watch a socket, a question goes unanswered. Then it times
 * out as if the packet were lost.
 */
#include "io/resolver.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "io/clock.h"
#include "io/sigpipe.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/socket.h>

/*
 * The time until a question is repeated or the next name server is asked; it doubles with each pass
 * over the servers. An uplink usually abandons a lookup after 5 s at most, so that by c-ares' own 5
 * s a lost packet would cost the whole lookup, and a dead name server would keep the second one
 * from being asked. With 3 tries the only name server is waited for longer than the uplink does.
 * c-ares has no way to give defaults that resolv.conf overrides: these replace its `timeout` and
 * `attempts`.
 */
#define RETRY_MS 1000
#define TRIES 3

/*
 * The time without a packet after which a lookup that has received some ends with the addresses
 * that it has: a broken name server may answer for one family only. It leaves time for a repeated
 * question.
 */
#define QUIET_MAX (2 * RETRY_MS * NANOS_PER_MS)

/* A socket of c-ares. Their number depends on that of the name servers. */
struct query_socket {
    struct lookup *lookup;
    struct fd_watch watch;
    LIST_ENTRY(query_socket) link;
};

struct lookup {
    struct resolver *resolver;
    ares_channel channel;
    LIST_HEAD(, query_socket) sockets;
    struct timer timer;   /* the channel's timeouts and `quiet_at`; once it is done, its end */
    uint64_t quiet_at;    /* the end of the wait for more packets; NANOS_NEVER: none came yet */
    resolver_cb *on_done; /* NULL: canceled */
    void *arg;
    bool is_done;
    struct addresses addresses; /* of the answer */
    const char *why;            /* there are none */
};

void resolver_init(struct resolver *resolver, redlock_loop *loop,
                   const redlock_allocator *allocator) {
    *resolver = (struct resolver){.loop = loop, .allocator = allocator};
}

bool resolver_is_numeric(const char *host) {
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* ---- the end of a lookup ---- */

static void destroy_lookup(struct lookup *lookup) {
    timer_finish(&lookup->timer);
    if (lookup->channel != NULL) {
        ares_destroy(lookup->channel); /* closes its sockets, by on_socket_state */
    }
    memory_free(lookup->resolver->allocator, lookup);
}

static void end_lookup(struct lookup *lookup) {
    struct addresses addresses = lookup->addresses;
    const char *why = lookup->why;
    resolver_cb *on_done = lookup->on_done;
    void *arg = lookup->arg;
    lookup->resolver->pending--;
    destroy_lookup(lookup);
    if (on_done != NULL) {
        on_done(arg, addresses.count > 0 ? &addresses : NULL, why);
    }
}

/* Has the timer end the lookup. Further answers, such as those by ares_destroy, do not count. */
static void set_done(struct lookup *lookup) {
    lookup->is_done = true;
    timer_soon(&lookup->timer);
}

/* ---- answers ---- */

static void add_addresses(struct addresses *addresses, const struct ares_addrinfo *found,
                          int family) {
    const struct ares_addrinfo_node *node = found->nodes;
    for (; node != NULL && addresses->count < RESOLVER_ADDRESSES_MAX; node = node->ai_next) {
        const struct sockaddr *address = node->ai_addr;
        const void *bytes = family == AF_INET6
                                ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                                : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
        char *text = addresses->list[addresses->count];
        if (node->ai_family == family) {
            addresses->count += inet_ntop(family, bytes, text, RESOLVER_ADDRESS_SIZE) != NULL;
        }
    }
}

static void store_answer(struct lookup *lookup, int status, const struct ares_addrinfo *found) {
    if (lookup->is_done) {
        return;
    }
    if (status == ARES_SUCCESS && found != NULL) {
        /* The halves come in any order. IPv4 first: there may be no route for IPv6. */
        add_addresses(&lookup->addresses, found, AF_INET);
        add_addresses(&lookup->addresses, found, AF_INET6);
    }
    lookup->why = status != ARES_SUCCESS ? ares_strerror(status) : "the name has no address";
    set_done(lookup);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found) {
    (void)timeouts;
    store_answer(arg, status, found);
    if (found != NULL) {
        ares_freeaddrinfo(found);
    }
}

/* ---- time ---- */

static void set_timer(struct lookup *lookup) {
    struct timeval tv;
    if (lookup->is_done) {
        return; /* set to end it */
    }
    uint64_t at = lookup->quiet_at;
    if (ares_timeout(lookup->channel, NULL, &tv) != NULL) {
        /* c-ares rounds down to milliseconds. */
        uint64_t delay = (uint64_t)tv.tv_sec * 1000 * NANOS_PER_MS + (uint64_t)tv.tv_usec * 1000;
        at = nanos_min(at, nanos_add(clock_now(), delay + NANOS_PER_MS));
    }
    timer_set(&lookup->timer, at);
}

/* Ends the lookup with the addresses that have come. */
static void settle(struct lookup *lookup) {
    ares_cancel(lookup->channel); /* up to c-ares 1.23 this reports what there is */
    store_answer(lookup, ARES_ETIMEOUT, NULL);
}

static void on_timer(void *arg) {
    struct lookup *lookup = arg;
    if (lookup->is_done) {
        end_lookup(lookup);
        return;
    }
    if (clock_now() >= lookup->quiet_at) {
        settle(lookup);
    } else {
        ares_process_fd(lookup->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    }
    set_timer(lookup);
}

/* ---- sockets ---- */

static void on_ready(void *arg, unsigned events) {
    const struct query_socket *ready = arg; /* c-ares may close it */
    struct lookup *lookup = ready->lookup;
    ares_socket_t fd = ready->watch.fd;
    struct sigpipe_guard guard;
    if (events & WATCH_READABLE) {
        lookup->quiet_at = nanos_add(clock_now(), QUIET_MAX);
    }
    sigpipe_block(&guard); /* for name servers that are asked over TCP */
    ares_process_fd(lookup->channel, events & WATCH_READABLE ? fd : ARES_SOCKET_BAD,
                    events & WATCH_WRITABLE ? fd : ARES_SOCKET_BAD);
    sigpipe_restore(&guard, (events & WATCH_WRITABLE) != 0);
    set_timer(lookup);
}

static struct query_socket *find_socket(const struct lookup *lookup, int fd) {
    struct query_socket *found;
    LIST_FOREACH(found, &lookup->sockets, link) {
        if (found->watch.fd == fd) {
            break;
        }
    }
    return found;
}

static struct query_socket *add_socket(struct lookup *lookup, int fd) {
    struct query_socket *added = memory_alloc(lookup->resolver->allocator, sizeof(*added));
    if (added != NULL) {
        added->lookup = lookup;
        fd_watch_init(&added->watch, lookup->resolver->loop, fd, on_ready, added);
        LIST_INSERT_HEAD(&lookup->sockets, added, link);
    }
    return added;
}

static void remove_socket(struct query_socket *removed) {
    fd_watch_finish(&removed->watch);
    LIST_REMOVE(removed, link);
    memory_free(removed->lookup->resolver->allocator, removed);
}

/* Watches a socket for c-ares. Before c-ares closes it, both are false. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable) {
    struct lookup *lookup = arg;
    struct query_socket *known = find_socket(lookup, fd);
    unsigned events = (readable ? WATCH_READABLE : 0u) | (writable ? WATCH_WRITABLE : 0u);
    if (known == NULL && events != 0) {
        known = add_socket(lookup, fd);
    }
    if (known != NULL && (events == 0 || !fd_watch_set(&known->watch, events))) {
        remove_socket(known);
    }
}

/* ---- the start of a lookup ---- */

static int library_status;

static void init_library(void) {
    library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

static int make_channel(struct lookup *lookup) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char lookups[] = "fb"; /* the hosts file, then name servers, whatever nsswitch.conf says */
    struct ares_options options = {
        .timeout = RETRY_MS,
        .tries = TRIES,
        .lookups = lookups,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = lookup,
    };
    const int mask =
        ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    pthread_once(&once, init_library);
    return library_status != ARES_SUCCESS ? library_status
                                          : ares_init_options(&lookup->channel, &options, mask);
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg) {
    struct lookup *lookup = memory_zalloc(resolver->allocator, sizeof(*lookup));
    int status = ARES_ENOMEM;
    if (lookup != NULL) {
        lookup->resolver = resolver;
        lookup->on_done = on_done;
        lookup->arg = arg;
        lookup->quiet_at = NANOS_NEVER;
        LIST_INIT(&lookup->sockets);
        timer_init(&lookup->timer, resolver->loop, on_timer, lookup);
        status = make_channel(lookup);
    }
    if (status != ARES_SUCCESS) {
        if (lookup != NULL) {
            destroy_lookup(lookup);
        }
        on_done(arg, NULL, ares_strerror(status));
        return NULL;
    }
    resolver->pending++;
    /* Unsorted: c-ares would open more sockets to sort, and the owner of the zone gave an order. */
    const struct ares_addrinfo_hints hints = {
        .ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    ares_getaddrinfo(lookup->channel, host, NULL, &hints, on_answer, lookup);
    set_timer(lookup);
    return lookup;
}

void lookup_cancel(struct lookup *lookup) {
    if (lookup != NULL) {
        lookup->on_done = NULL;
        set_done(lookup);
    }
}
