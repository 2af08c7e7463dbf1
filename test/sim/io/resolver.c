/* Resolves names of nodes ("node3") to addresses, with a delay; sometimes fails. */
#include "io/resolver.h"

#include "network.h"
#include "process.h"

#include "base/memory.h"

#include <string.h>

struct lookup {
    struct resolver *resolver;
    struct alarm alarm;
    resolver_cb *on_done; /* NULL: canceled */
    void *arg;
};

void resolver_init(struct resolver *resolver, redlock_loop *loop,
                   const redlock_allocator *allocator) {
    *resolver = (struct resolver){.loop = loop, .allocator = allocator};
}

bool resolver_is_numeric(const char *host) {
    return strncmp(host, "node", 4) != 0;
}

static void on_answer(void *owner) {
    struct lookup *lookup = owner;
    struct resolver *resolver = lookup->resolver;
    struct event_base *process = process_of(resolver->loop);
    resolver->pending--;
    if (lookup->on_done != NULL && process_is_refused(process)) {
        lookup->on_done(lookup->arg, NULL, "temporary failure in name resolution");
    } else if (lookup->on_done != NULL) {
        static const struct addresses addresses = {2, {SIM_NOBODY, "10.0.0.1"}};
        lookup->on_done(lookup->arg, &addresses, NULL);
    }
    alarm_clear(&lookup->alarm);
    memory_free(resolver->allocator, lookup);
}

struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg) {
    struct event_base *process = process_of(resolver->loop);
    struct world *world = process->world;
    struct lookup *lookup = memory_alloc(resolver->allocator, sizeof(*lookup));
    (void)host;
    if (lookup == NULL) {
        on_done(arg, NULL, "out of memory");
        return NULL;
    }
    lookup->resolver = resolver;
    lookup->on_done = on_done;
    lookup->arg = arg;
    alarm_init(&lookup->alarm, process, on_answer, lookup);
    alarm_set(&lookup->alarm, world->now + rng_below(&world->rng, 20 * MS));
    resolver->pending++;
    return lookup;
}

void lookup_cancel(struct lookup *lookup) {
    if (lookup != NULL) {
        lookup->on_done = NULL;
    }
}
