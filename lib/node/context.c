#include "node/context.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/clock.h"
#include "io/fork.h"
#include "io/random.h"
#include "io/tls.h"

#include <string.h>

static void copy_options(struct context *context, const redlock_options *options) {
    context->options = *options;
    context->options.nodes = NULL; /* these pointers are the caller's */
    context->options.name = context->options.owner = NULL;
    context->options.allocator = NULL;
    context->options.tls_ca_file = context->options.tls_ca_path = NULL;
    context->options.tls_cert_file = context->options.tls_key_file = NULL;
    context->allocator = memory_allocator(options->allocator);
    context->log = (struct log){options->log, options->log_arg, options->log_level};
}

static void init_parts(struct context *context, redlock_loop *loop, void *client) {
    const redlock_options *options = &context->options;
    context->seed = random_seed();
    ticks_init(&context->ticks, options->max_commands, &context->seed);
    event_log_init(&context->event_log, &context->log, clock_glance);
    events_add(&context->events, &context->event_log.sink);
    trace_init(&context->trace, client, options->trace, options->trace_arg);
    events_add(&context->events, &context->trace.sink);
    probes_init(&context->probes, client);
    events_add(&context->events, &context->probes.sink);
    context->generation = fork_generation();
    context->shortest_ttl = NANOS_NEVER;
    context->loop = loop;
    loop_hold(loop);
    const struct load_bounds bounds = {options->max_commands, options->max_bytes};
    net_init(&context->net, loop, &context->allocator, &bounds);
    resolver_init(&context->resolver, loop, &context->allocator);
    keys_init(&context->keys, &context->allocator);
    random_open(&context->random);
    bytes_init(&context->scratch, &context->allocator);
}

static bool asks_for_tls(const redlock_options *options) {
    return options->tls_ca_file != NULL || options->tls_ca_path != NULL ||
           options->tls_cert_file != NULL;
}

/* Copies a label; NULL is copied as "". Returns false when out of memory. */
static bool copy_label(const struct context *context, const char *label, char **copy) {
    label = label != NULL ? label : "";
    *copy = memory_copy(&context->allocator, label, strlen(label));
    return *copy != NULL;
}

redlock_status context_init(struct context *context, redlock_loop *loop,
                            const redlock_options *options, void (*on_turn)(void *arg), void *arg,
                            redlock_error *error) {
    copy_options(context, options);
    init_parts(context, loop, arg);
    timer_init(&context->turn, loop, on_turn, arg);
    bool has_memory = copy_label(context, options->name, &context->name) &&
                      copy_label(context, options->owner, &context->owner);
    if (!has_memory) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    return asks_for_tls(options) ? tls_create(options, &context->allocator, &context->tls, error)
                                 : REDLOCK_OK;
}

redlock_status context_need_tls(struct context *context, redlock_error *error) {
    return context->tls != NULL
               ? REDLOCK_OK
               : tls_create(&context->options, &context->allocator, &context->tls, error);
}

bool context_is_inherited(const struct context *context) {
    return context->generation != fork_generation();
}

redlock_status context_check_end(struct context *context) {
    if (context_is_inherited(context)) {
        return error_set(&context->refusal, REDLOCK_EINVAL,
                         "this process is a child (fork) of the one that made the client");
    }
    return context->is_closed
               ? error_set(&context->refusal, REDLOCK_ECLOSED, "the client is closed")
               : REDLOCK_OK;
}

redlock_status context_check(struct context *context) {
    redlock_status status = context_check_end(context);
    return status == REDLOCK_OK && context->is_closing
               ? error_set(&context->refusal, REDLOCK_ECLOSED, "the client is closing")
               : status;
}

void context_finish(struct context *context) {
    timer_finish(&context->turn);
    keys_finish(&context->keys);
    bytes_finish(&context->scratch);
    random_close(&context->random);
    memory_free(&context->allocator, context->name);
    memory_free(&context->allocator, context->owner);
    if (context->tls != NULL) {
        context->tls->methods->destroy(context->tls);
    }
    loop_drop(context->loop);
}

void context_wake(struct context *context) {
    if (!context->in_turn && !context->is_woken) {
        context->is_woken = true;
        timer_soon(&context->turn);
    }
}
