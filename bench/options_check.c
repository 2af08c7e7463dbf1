#include "options_check.h"

#include <inttypes.h>

/* The modes, as bits. */
enum mode { CYCLES = 1, HELD = 2, CONTEND = 4, MIXED = 8, FLEET = 16 };

static enum mode mode_of(const struct options *options) {
    if (options->contend) {
        return CONTEND;
    }
    if (options->held > 0) {
        return HELD;
    }
    if (options->fleet > 0) {
        return FLEET;
    }
    return options->mixed > 0 ? MIXED : CYCLES;
}

/* Returns the option that selects a mode other than CYCLES. */
static const char *option_of(unsigned mode) {
    switch (mode) {
    case HELD:
        return "--held";
    case MIXED:
        return "--mixed";
    case FLEET:
        return "--fleet";
    default:
        return "--contend";
    }
}

/* Refuses an option that the mode does not have. */
static _Noreturn void refuse_use(enum mode mode, const char *option, unsigned modes) {
    if (mode == CYCLES) {
        options_refuse("%s goes with %s alone", option, option_of(modes));
    }
    options_refuse("%s does not go with %s", option, option_of(mode));
}

static void refuse_both(const char *option, const char *other, bool is_given) {
    if (is_given) {
        options_refuse("%s does not go with %s", option, other);
    }
}

void options_check_uses(const struct options *options) {
    enum mode mode = mode_of(options);
    const struct {
        const char *option;
        bool is_given;
        unsigned modes;
    } uses[] = {
        {"--nodes", options->nodes != NULL, CYCLES | CONTEND},
        {"--null-masters", options->null_masters, CYCLES},
        {"--in-flight", options->in_flight > 0, CYCLES | MIXED},
        {"--cycles", options->cycles > 0, CYCLES},
        {"--rate", options->rate > 0, CYCLES | FLEET},
        {"--mode", options->mode != REDLOCK_EXCLUSIVE, CYCLES},
        {"--threads", options->threads > 0, CYCLES},
        {"--floor", options->load != LOAD_REDLOCK, CYCLES},
        {"--loop", options->loop != NULL, CYCLES},
        {"--mt", options->shares_client, CYCLES},
        {"--rtt, --jitter or --late", options->relayed, CYCLES | HELD | CONTEND},
        {"--held", options->held > 0, HELD},
        {"--busy", options->busy_ms > 0, HELD},
        {"--stop", options->stop > 0, HELD},
        {"--clients", options->clients > 0, CONTEND},
        {"--processes", options->processes > 0, CONTEND},
        {"--keys K", options->keys > 0, CONTEND},
        {"--keys with a distribution", options->spread_text != NULL, CYCLES},
        {"--hold-us", options->is_hold_given, CYCLES | CONTEND},
        {"--poll", options->poll, CONTEND},
        {"--fenced", options->fenced, CYCLES | HELD | CONTEND | MIXED},
        {"--mixed", options->mixed > 0, MIXED},
        {"--fleet", options->fleet > 0, FLEET},
        {"--working", options->working > 0, FLEET},
    };

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (uses[i].is_given && (uses[i].modes & mode) == 0) {
            refuse_use(mode, uses[i].option, uses[i].modes);
        }
    }
    if ((options->spawn > 0) == (options->nodes != NULL)) {
        options_refuse("give either --spawn or --nodes");
    }
    if (options->null_masters && options->spawn == 0) {
        options_refuse("--null-masters goes with --spawn");
    }
    if (options->shares_client) {
        refuse_both("--cycles", "--mt", options->cycles > 0);
        refuse_both("--threads", "--mt", options->threads > 0);
        refuse_both("--loop", "--mt", options->loop != NULL);
        refuse_both("--rate", "--mt", options->rate > 0);
        refuse_both("--hold-us", "--mt", options->is_hold_given);
        refuse_both("--floor", "--mt", options->load != LOAD_REDLOCK);
        refuse_both("--keys with a distribution", "--mt", options->spread_text != NULL);
        refuse_both("--in-flight", "--mt of 1 or more",
                    options->blocking > 0 && options->in_flight > 0);
    }
    if (options->cycles > 0) {
        refuse_both("--cycles", "--duration", options->duration_s > 0);
        refuse_both("--cycles", "--threads", options->threads > 0);
    }
}

static void check_held(const struct options *options) {
    if (options->busy_ms > 0 && options->stop > 0) {
        options_refuse("--busy does not go with --stop");
    }
    if (options->stop >= options->spawn) {
        options_refuse("--stop: %zu of %zu masters leave none", options->stop, options->spawn);
    }
    if ((double)options->busy_ms / 1e3 >= options->duration_s * 2 / 3) {
        options_refuse("--busy: %" PRIu64 " ms are not over within --duration", options->busy_ms);
    }
}

static void check_hold(const struct options *options) {
    if (options->hold_us >= options->ttl_ms * 1000) {
        options_refuse("--hold-us: %" PRIu64 " us are not below the TTL of %" PRIu64 " ms",
                       options->hold_us, options->ttl_ms);
    }
}

/* Checks that every process and every key has a contender. */
static void check_contend(const struct options *options) {
    if (options->processes > options->clients) {
        options_refuse("--processes: %zu are more than the %zu of --clients", options->processes,
                       options->clients);
    }
    if (options->keys > options->clients) {
        options_refuse("--keys: %zu are more than the %zu of --clients", options->keys,
                       options->clients);
    }
    check_hold(options);
}

/* Refuses options that need plain locks of the library on real masters. */
static void check_plain(const struct options *options, const char *option) {
    refuse_both("--fenced", option, options->fenced);
    refuse_both("--mode", option, options->mode != REDLOCK_EXCLUSIVE);
    refuse_both("--keys", option, options->spread.kind != KEYS_UNIQUE);
}

static void check_cycles(const struct options *options) {
    if (options->load != LOAD_REDLOCK) {
        check_plain(options, "--floor");
        refuse_both("--node-timeout", "--floor", options->node_timeout_ms > 0);
    }
    if (options->loop != NULL) { /* the benchmark's own timers are too coarse beside it */
        refuse_both("--rate", "--loop", options->rate > 0);
        refuse_both("--hold-us", "--loop", options->hold_us > 0);
        refuse_both("--floor", "--loop", options->load != LOAD_REDLOCK);
    }
    if (options->null_masters) {
        check_plain(options, "--null-masters");
    }
    if (options->mode == REDLOCK_READER) {
        refuse_both("--fenced", "--mode reader", options->fenced);
    }
    check_hold(options);
    if (options->rate > 0 && options->rate < options->threads) {
        options_refuse("--rate: %zu per second are less than one for each of %zu threads",
                       options->rate, options->threads);
    }
}

/* Checks that each master has a round trip. */
static void check_rtt(const struct options *options) {
    size_t values = options->delays.rtt_count;
    size_t masters = options->spawn > 0 ? options->spawn : options->node_count;

    if (values > 1 && values != masters) {
        options_refuse("--rtt: \"%s\" has %zu values, but there are %zu masters; give one value, "
                       "or one for each",
                       options->rtt_text, values, masters);
    }
}

void options_check_values(const struct options *options) {
    check_rtt(options);
    switch (mode_of(options)) {
    case CYCLES:
        check_cycles(options);
        break;
    case HELD:
        check_held(options);
        break;
    case CONTEND:
        check_contend(options);
        break;
    case MIXED:
    case FLEET:
        break;
    }
}
