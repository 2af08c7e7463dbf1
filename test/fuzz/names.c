/*
 * A resolver whose names determine the answer. The first letter determines when the answer comes:
 * "at-once", inside the call; "later", one iteration on; with any other letter never, until the
 * lookup is canceled. A canceled lookup ends one iteration later, as with c-ares. The last letter
 * determines the answer: "x", that there is no such name; otherwise an address.
 */
#include "base/memory.h"
#include "check.h"
#include "io/resolver.h"
#include "world.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/queue.h>

struct lookup {
    TAILQ_ENTRY(lookup) link;
    struct resolver *resolver;
    resolver_cb *on_done; /* NULL: canceled */
    void *arg;
    bool exists, is_due;
};

static TAILQ_HEAD(, lookup) lookups = TAILQ_HEAD_INITIALIZER(lookups);

void names_end(void) {
    CHECK(TAILQ_EMPTY(&lookups));
}

void resolver_init(struct resolver *resolver, redlock_loop *loop,
                   const redlock_allocator *allocator) {
    *resolver = (struct resolver){.loop = loop, .allocator = allocator};
}

bool resolver_is_numeric(const char *host) {
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* Answers with this machine: the URIs name port 1, where no server listens. */
static void answer(resolver_cb *on_done, void *arg, bool exists) {
    static const struct addresses addresses = {2, {"127.0.0.1", "::1"}};
    on_done(arg, exists ? &addresses : NULL, "no such name");
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg) {
    bool exists = host[strlen(host) - 1] != 'x';
    struct lookup *lookup = memory_zalloc(resolver->allocator, sizeof(*lookup));
    if (lookup == NULL || host[0] == 'a') {
        memory_free(resolver->allocator, lookup);
        answer(on_done, arg, exists);
        return NULL;
    }
    lookup->resolver = resolver;
    lookup->on_done = on_done;
    lookup->arg = arg;
    lookup->exists = exists;
    lookup->is_due = host[0] == 'l';
    resolver->pending++;
    TAILQ_INSERT_TAIL(&lookups, lookup, link);
    return lookup;
}

void lookup_cancel(struct lookup *lookup) {
    if (lookup != NULL) {
        lookup->on_done = NULL;
        lookup->is_due = true;
    }
}

static void end(struct lookup *lookup) {
    TAILQ_REMOVE(&lookups, lookup, link);
    lookup->resolver->pending--;
    if (lookup->on_done != NULL) {
        answer(lookup->on_done, lookup->arg, lookup->exists);
    }
    memory_free(lookup->resolver->allocator, lookup);
}

void names_turn(void) {
    struct lookup *lookup = TAILQ_FIRST(&lookups);
    while (lookup != NULL) {
        struct lookup *next = TAILQ_NEXT(lookup, link);
        if (lookup->is_due) {
            end(lookup);
        }
        lookup = next;
    }
}
