/*
 * A victim suffers one fault of a class at a time: processes are stopped or killed, the network
 * between them is disturbed, clocks jump. Faults of different classes may combine in any way.
 */
#include "storm.h"

#include "chance.h"
#include "poll_timeout.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum fault_class { OF_PROCESSES, OF_NETWORK, OF_CLOCKS };

static enum fault_class class_of(enum nemesis nemesis) {
    switch (nemesis) {
    case DELAY:
    case DROP:
    case HALF_OPEN:
    case RESET:
    case CUT:
        return OF_NETWORK;
    case CLOCKS:
        return OF_CLOCKS;
    default:
        return OF_PROCESSES;
    }
}

static uint64_t draw(struct storm *storm, uint64_t below) {
    return chance_draw(&storm->random, below);
}

/* Draws a duration from 0.1 to 3 TTL, short ones as often as long ones. */
static uint64_t draw_duration_ns(struct storm *storm) {
    uint64_t tenth_ns = storm->stage->options->ttl_ms * NS_PER_MS / 10;
    uint64_t most = draw(storm, 2) == 0 ? 10 : 30;

    return tenth_ns + draw(storm, tenth_ns * (most - 1));
}

/* -------------------------------------------------------------------------------------- victims */

static bool is_busy(const struct storm *storm, enum fault_class class, uint32_t masters,
                    uint64_t clients) {
    for (size_t i = 0; i < STORM_FAULTS; i++) {
        const struct fault *fault = &storm->faults[i];

        if (fault->heal_ns != 0 && class_of(fault->nemesis) == class &&
            ((fault->masters & masters) != 0 || (fault->clients & clients) != 0)) {
            return true;
        }
    }
    return false;
}

/* Draws `count` numbers below `of`, as a mask. */
static uint64_t draw_some(struct storm *storm, uint64_t count, uint32_t of) {
    uint64_t some = 0;

    while (count > 0) {
        uint64_t one = UINT64_C(1) << draw(storm, of);

        if ((some & one) == 0) {
            some |= one;
            count--;
        }
    }
    return some;
}

static bool is_on_clients(enum nemesis nemesis, bool by_chance) {
    return nemesis == PAUSE_CLIENTS || nemesis == KILL_CLIENTS ||
           (class_of(nemesis) == OF_NETWORK && by_chance);
}

static void draw_victims(struct storm *storm, struct fault *fault) {
    uint32_t clients = storm->stage->options->clients;

    if (is_on_clients(fault->nemesis, draw(storm, 2) == 0)) {
        fault->clients = draw_some(storm, 1 + draw(storm, (clients + 1) / 2), clients);
    } else if (fault->nemesis == AMNESIA || fault->nemesis == CLOCKS) {
        fault->masters = (uint32_t)draw_some(storm, 3 + draw(storm, 3), MASTERS);
    } else {
        fault->masters = (uint32_t)draw_some(storm, 1 + draw(storm, 3), MASTERS);
    }
}

/* -------------------------------------------------------------------- faults of the network */

static bool is_hit(const struct fault *fault, uint32_t client, uint32_t master) {
    return ((fault->clients >> client) & 1) != 0 || ((fault->masters >> master) & 1) != 0;
}

static void order_links(struct storm *storm, const struct fault *fault, enum link_fault kind) {
    struct stage *stage = storm->stage;
    uint64_t ttl_ms = stage->options->ttl_ms;
    struct link_order order = {
        .fault = kind,
        .from = 1 + (uint32_t)draw(storm, kind == LINK_HALF_OPENS ? 2 : 3),
        .delay_ms = (uint32_t)(draw(storm, 2) == 0 ? draw(storm, 50) : draw(storm, 2 * ttl_ms)),
    };

    for (uint32_t client = 0; client < stage->options->clients; client++) {
        for (uint32_t master = 0; master < MASTERS; master++) {
            order.link = client * MASTERS + master;
            if (is_hit(fault, client, master)) {
                fault_proxy_order(&stage->proxy, &order);
            }
        }
    }
}

static void harm_host(struct storm *storm, const struct fault *fault, size_t host, bool alone,
                      uint32_t amount) {
    const struct hosts *hosts = &storm->stage->hosts;

    if (fault->nemesis == CUT) {
        hosts_cut(hosts, host, alone);
    } else if (fault->nemesis == DELAY) {
        hosts_delay(hosts, host, 1 + amount);
    } else {
        hosts_lose(hosts, host, 5 + amount % 60);
    }
}

static void each_host(struct storm *storm, const struct fault *fault, bool harm) {
    bool alone = draw(storm, 2) == 0;
    uint32_t amount = (uint32_t)draw(storm, storm->stage->options->ttl_ms);
    uint64_t hosts = fault->masters;

    for (size_t host = 0; host < storm->stage->hosts.count; host++) {
        bool hit = host < MASTERS ? ((hosts >> host) & 1) != 0
                                  : ((fault->clients >> (host - MASTERS)) & 1) != 0;

        if (hit && harm) {
            harm_host(storm, fault, host, alone, amount);
        } else if (hit) {
            hosts_heal(&storm->stage->hosts, host);
        }
    }
}

static void harm_network(struct storm *storm, const struct fault *fault) {
    static const enum link_fault kinds[NEMESES] = {
        [DELAY] = LINK_DELAYS, [DROP] = LINK_DROPS, [HALF_OPEN] = LINK_HALF_OPENS,
        [RESET] = LINK_RESETS, [CUT] = LINK_CUTS,
    };

    if (storm->stage->options->hosts) {
        each_host(storm, fault, true);
    } else {
        order_links(storm, fault, kinds[fault->nemesis]);
    }
}

static void heal_network(struct storm *storm, const struct fault *fault) {
    if (storm->stage->options->hosts) {
        each_host(storm, fault, false);
    } else {
        order_links(storm, fault, LINK_PASSES);
    }
}

/* ---------------------------------------------------------------------- faults of processes */

static void harm_client(struct storm *storm, enum nemesis nemesis, uint32_t client) {
    if (nemesis == PAUSE_CLIENTS) {
        kill(storm->stage->clients[client].pid, SIGSTOP);
    } else {
        stage_kill_client(storm->stage, client);
    }
}

static int heal_client(struct storm *storm, enum nemesis nemesis, uint32_t client) {
    if (nemesis == PAUSE_CLIENTS) {
        kill(storm->stage->clients[client].pid, SIGCONT);
        return 0;
    }
    return stage_start_client(storm->stage, client);
}

/* Makes a master's clock jump forwards or back, by up to 3 TTL. */
static void jump(struct storm *storm, uint32_t master) {
    double ttl_s = (double)storm->stage->options->ttl_ms / 1000;
    double offset_s = ((double)draw(storm, 6001) / 1000 - 3) * ttl_s;

    stage_set_clock(storm->stage, master, offset_s);
}

static void harm_master(struct storm *storm, enum nemesis nemesis, uint32_t master) {
    struct masters *masters = storm->stage->masters;

    switch (nemesis) {
    case PAUSE_MASTERS:
        masters_stop(masters, master);
        break;
    case CLOCKS:
        jump(storm, master);
        break;
    case KILL_MASTERS:
        masters_kill(masters, master);
        break;
    default:
        masters_kill(masters, master);
        masters_forget(masters, master);
    }
}

static void heal_master(struct storm *storm, enum nemesis nemesis, uint32_t master) {
    if (nemesis == PAUSE_MASTERS) {
        masters_continue(storm->stage->masters, master);
    } else if (nemesis == CLOCKS) {
        stage_set_clock(storm->stage, master, 0);
    } else {
        masters_restart(storm->stage->masters, master);
    }
}

/* ----------------------------------------------------------------------------- the schedule */

static void harm(struct storm *storm, const struct fault *fault) {
    storm->counts[fault->nemesis]++;
    if (class_of(fault->nemesis) == OF_NETWORK) {
        harm_network(storm, fault);
        return;
    }
    for (uint32_t i = 0; i < MASTERS; i++) {
        if (((fault->masters >> i) & 1) != 0) {
            harm_master(storm, fault->nemesis, i);
        }
    }
    for (uint32_t i = 0; i < storm->stage->options->clients; i++) {
        if (((fault->clients >> i) & 1) != 0) {
            harm_client(storm, fault->nemesis, i);
        }
    }
}

static int heal(struct storm *storm, struct fault *fault) {
    int outcome = 0;

    fault->heal_ns = 0;
    if (class_of(fault->nemesis) == OF_NETWORK) {
        heal_network(storm, fault);
        return 0;
    }
    for (uint32_t i = 0; i < MASTERS; i++) {
        if (((fault->masters >> i) & 1) != 0) {
            heal_master(storm, fault->nemesis, i);
        }
    }
    for (uint32_t i = 0; i < storm->stage->options->clients; i++) {
        if (((fault->clients >> i) & 1) != 0 && heal_client(storm, fault->nemesis, i) != 0) {
            outcome = -1;
        }
    }
    return outcome;
}

static enum nemesis draw_nemesis(struct storm *storm) {
    unsigned nemesis;

    do {
        nemesis = (unsigned)draw(storm, NEMESES);
    } while ((storm->stage->options->nemeses & NEMESIS_BIT(nemesis)) == 0);
    return (enum nemesis)nemesis;
}

/* Sets a fault's end, counted from its completion: a late restart must not come too early. */
static void set_end(struct storm *storm, struct fault *fault) {
    uint64_t now_ns = boottime_ns();

    if (fault->nemesis == AMNESIA) {
        fault->heal_ns = now_ns;
    } else if (fault->nemesis == KILL_MASTERS_LATE) {
        fault->heal_ns = now_ns + storm->stage->options->ttl_ms * NS_PER_MS;
    } else {
        fault->heal_ns = now_ns + draw_duration_ns(storm);
    }
}

static bool is_possible(const struct storm *storm, const struct fault *fault) {
    const struct stage *stage = storm->stage;
    bool needs_netem = fault->nemesis == DELAY || fault->nemesis == DROP;

    return !is_busy(storm, class_of(fault->nemesis), fault->masters, fault->clients) &&
           !(stage->options->hosts && needs_netem && !stage->hosts.has_netem);
}

static void strike(struct storm *storm) {
    struct fault fault = {.nemesis = draw_nemesis(storm)};

    draw_victims(storm, &fault);
    if (!is_possible(storm, &fault)) {
        return;
    }
    for (size_t i = 0; i < STORM_FAULTS; i++) {
        if (storm->faults[i].heal_ns == 0) {
            harm(storm, &fault);
            set_end(storm, &fault);
            storm->faults[i] = fault;
            return;
        }
    }
}

void storm_begin(struct storm *storm, struct stage *stage) {
    *storm = (struct storm){.stage = stage};
    chance_seed(&storm->random, stage->options->seed);
    storm->next_ns = boottime_ns() + stage->options->ttl_ms * NS_PER_MS;
}

int storm_turn(struct storm *storm) {
    uint64_t now_ns = boottime_ns();

    for (size_t i = 0; i < STORM_FAULTS; i++) {
        struct fault *fault = &storm->faults[i];

        if (fault->heal_ns != 0 && fault->heal_ns <= now_ns && heal(storm, fault) != 0) {
            return -1;
        }
    }
    if (storm->next_ns <= now_ns) {
        strike(storm);
        storm->next_ns = now_ns + draw(storm, storm->stage->options->ttl_ms * NS_PER_MS);
    }
    return 0;
}

/* Waits until a fault is over, which takes the longest TTL at most. */
static void outlast(const struct fault *fault) {
    struct poll_timeout timeout = {0};
    uint64_t now_ns = boottime_ns();
    uint64_t left_ms = fault->heal_ns > now_ns ? (fault->heal_ns - now_ns) / NS_PER_MS + 1 : 0;

    while (poll_timeout_wait(&timeout, left_ms)) {
    }
}

int storm_end(struct storm *storm) {
    int outcome = 0;

    for (size_t i = 0; i < STORM_FAULTS; i++) {
        struct fault *fault = &storm->faults[i];

        /* A master that forgot must stay out for the longest TTL. */
        if (fault->heal_ns != 0 && fault->nemesis == KILL_MASTERS_LATE) {
            outlast(fault);
        }
        if (fault->heal_ns != 0 && heal(storm, fault) != 0) {
            outcome = -1;
        }
    }
    return outcome;
}
