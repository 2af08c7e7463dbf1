#include "probe.h"

#include "address.h"
#include "clock.h"
#include "memory.h"
#include "shares.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ANSWER_TIMEOUT_S 5

struct probe {
    const char *uri;
    redisContext *context;
};

static void complain(const char *uri, const char *problem) {
    fprintf(stderr, "redlock-bench: %s: %s\n", uri, problem);
}

struct probe *probe_open(const char *uri) {
    struct address address;
    const char *problem = address_parse(&address, uri);
    struct timeval timeout = clock_interval(ANSWER_TIMEOUT_S);
    struct probe *probe;

    if (problem != NULL) {
        complain(uri, problem);
        return NULL;
    }
    probe = memory_take(1, sizeof(*probe));
    probe->uri = uri;
    probe->context = address.path != NULL
                         ? redisConnectUnixWithTimeout(address.path, timeout)
                         : redisConnectWithTimeout(address.host, address.port, timeout);
    if (probe->context == NULL || probe->context->err != 0) {
        complain(uri, probe->context != NULL ? probe->context->errstr : "out of memory");
        probe_close(probe);
        return NULL;
    }
    redisSetTimeout(probe->context, timeout);
    return probe;
}

void probe_close(struct probe *probe) {
    if (probe != NULL) {
        if (probe->context != NULL) {
            /* Forked processes also have the socket: a MONITOR would go on and slow the node down.
             */
            shutdown(probe->context->fd, SHUT_RDWR);
            redisFree(probe->context);
        }
        free(probe);
    }
}

/* Reads the next answer, which must have this type. Returns NULL on failure, after a message. */
static redisReply *take_answer(struct probe *probe, int type) {
    redisReply *reply = NULL;
    void *answer;

    if (redisGetReply(probe->context, &answer) != REDIS_OK) {
        complain(probe->uri, probe->context->errstr);
        return NULL;
    }
    reply = answer;
    if (reply->type != type) {
        complain(probe->uri, reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

/* Sends a command. Returns false on failure, after a message. */
static bool send_command(struct probe *probe, const char *command) {
    int done = 0;

    if (redisAppendCommand(probe->context, command) != REDIS_OK) {
        complain(probe->uri, "out of memory");
        return false;
    }
    while (!done) {
        if (redisBufferWrite(probe->context, &done) != REDIS_OK) {
            complain(probe->uri, probe->context->errstr);
            return false;
        }
    }
    return true;
}

static redisReply *ask(struct probe *probe, const char *command, int type) {
    return send_command(probe, command) ? take_answer(probe, type) : NULL;
}

/* Waits until a quorum of the nodes has answered. Returns false on failure, after a message. */
static bool wait_for_quorum(struct probe *const *probes, size_t count) {
    struct pollfd polls[REDLOCK_MAX_NODES];
    size_t answered = 0;

    for (size_t i = 0; i < count; i++) {
        polls[i] = (struct pollfd){.fd = probes[i]->context->fd, .events = POLLIN};
    }
    while (answered < count / 2 + 1) {
        int ready = poll(polls, count, ANSWER_TIMEOUT_S * 1000);

        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            complain(probes[0]->uri, "no quorum of the nodes answers");
            return false;
        }
        for (size_t i = 0; i < count && ready > 0; i++) {
            if (polls[i].revents != 0) {
                answered++;
                polls[i].fd = -1; /* counted: makes poll ignore the entry */
            }
        }
    }
    return true;
}

static bool quorum_trip(struct probe *const *probes, size_t count, struct histogram *times) {
    uint64_t began_ns = clock_now_ns();

    for (size_t i = 0; i < count; i++) {
        if (!send_command(probes[i], "PING")) {
            return false;
        }
    }
    if (!wait_for_quorum(probes, count)) {
        return false;
    }
    histogram_record(times, clock_now_ns() - began_ns);
    for (size_t i = 0; i < count; i++) {
        redisReply *reply = take_answer(probes[i], REDIS_REPLY_STATUS);

        if (reply == NULL) {
            return false;
        }
        freeReplyObject(reply);
    }
    return true;
}

bool probe_quorum_trips(struct probe *const *probes, size_t count, size_t trips,
                        struct histogram *times) {
    for (size_t i = 0; i < trips; i++) {
        if (!quorum_trip(probes, count, times)) {
            return false;
        }
    }
    return true;
}

bool probe_count_commands(struct probe *probe, const struct shares *shares, double *count) {
    redisReply *reply = ask(probe, "INFO commandstats", REDIS_REPLY_STRING);

    if (reply == NULL) {
        return false;
    }
    *count = shares_count(shares, reply->str);
    freeReplyObject(reply);
    return true;
}

static bool is_over(const struct probe_stretch *stretch, uint64_t began_ns,
                    const struct shares *shares) {
    double lasted_s = (double)(clock_now_ns() - began_ns) / 1e9;

    return lasted_s >= stretch->most_s ||
           (lasted_s >= stretch->least_s && shares_sent(shares) >= stretch->commands);
}

bool probe_watch(struct probe *probe, const struct probe_stretch *stretch, struct shares *shares) {
    uint64_t began_ns = clock_now_ns();
    redisReply *reply = ask(probe, "MONITOR", REDIS_REPLY_STATUS);
    void *line;

    if (reply == NULL) {
        return false;
    }
    freeReplyObject(reply);
    /* If a node is silent, the wait for a line times out, which ends the watch. */
    redisSetTimeout(probe->context, clock_interval(stretch->most_s));
    while (!is_over(stretch, began_ns, shares) &&
           redisGetReply(probe->context, &line) == REDIS_OK) {
        reply = line;
        if (reply->type == REDIS_REPLY_STATUS) {
            shares_record(shares, reply->str);
        }
        freeReplyObject(reply);
    }
    return true;
}
