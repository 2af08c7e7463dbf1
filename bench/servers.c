#include "servers.h"

#include "masters.h"
#include "memory.h"
#include "nulls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct servers {
    size_t count;
    struct masters *masters; /* NULL: null masters */
    struct nulls *nulls;     /* NULL: real masters */
};

static struct masters *start_masters(size_t count, size_t connections) {
    char number[24];
    const char *const arguments[] = {"--maxclients", number, NULL};

    snprintf(number, sizeof(number), "%zu", connections);
    return masters_start(count, connections > 0 ? arguments : NULL);
}

struct servers *servers_start(size_t count, bool null_masters, size_t connections) {
    struct servers *servers = memory_take(1, sizeof(*servers));

    servers->count = count;
    if (null_masters) {
        servers->nulls = nulls_start(count);
    } else {
        servers->masters = start_masters(count, connections);
    }
    if (servers->nulls == NULL && servers->masters == NULL) {
        free(servers);
        return NULL;
    }
    return servers;
}

void servers_finish(struct servers *servers) {
    if (servers != NULL) {
        nulls_finish(servers->nulls);
        masters_finish(servers->masters);
        free(servers);
    }
}

size_t servers_count(const struct servers *servers) {
    return servers->count;
}

const char *const *servers_uris(const struct servers *servers) {
    return servers->nulls != NULL ? nulls_uris(servers->nulls) : masters_uris(servers->masters);
}

struct masters *servers_masters(const struct servers *servers) {
    return servers != NULL ? servers->masters : NULL;
}

static double cpu_us_of(pid_t pid) {
    struct timespec time;
    clockid_t clock;

    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        return NAN;
    }
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

double servers_cpu_us(const struct servers *servers) {
    double sum = 0;

    if (servers == NULL) {
        return NAN;
    }
    if (servers->nulls != NULL) {
        return cpu_us_of(nulls_pid(servers->nulls));
    }
    for (size_t i = 0; i < servers->count; i++) {
        sum += cpu_us_of(masters_pid(servers->masters, i));
    }
    return sum;
}
