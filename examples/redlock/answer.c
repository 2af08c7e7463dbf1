#include "answer.h"

#include "direct.h"
#include "talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Bounds on an answer. The largest plausible one is a page of SCAN with the longest keys. */
#define BYTES_MOST (256u << 20)
#define ELEMENTS_MOST (1 << 20)

#define CHUNK (16 * 1024)

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* ---- arrays that are announced but never sent ---- */

static const redisReplyObjectFunctions *usual;

static void *make_array(const redisReadTask *task, element_count elements) {
    return elements > ELEMENTS_MOST ? NULL : usual->createArray(task, elements);
}

void answer_prepare(redisContext *context) {
    static redisReplyObjectFunctions functions;

    if (usual == NULL) {
        usual = context->reader->fn;
        functions = *usual;
        functions.createArray = make_array;
    }
    context->reader->fn = &functions;
}

/* ---- the time ---- */

static uint64_t timeout_of(const redisContext *context) {
    struct timeval time = {0};
    socklen_t size = sizeof(time);

    (void)!getsockopt(context->fd, SOL_SOCKET, SO_RCVTIMEO, &time, &size);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

static bool fail(redisContext *context, const char *why) {
    context->err = REDIS_ERR_OTHER;
    snprintf(context->errstr, sizeof(context->errstr), "%s", why);
    return false;
}

/* Waits until there are bytes to read. */
static bool wait_until(redisContext *context, uint64_t limit_ms) {
    struct pollfd readable = {.fd = context->fd, .events = POLLIN};
    int ready = -1;

    while (ready < 0) {
        uint64_t now_ms = talk_now_ms();

        ready = now_ms < limit_ms ? poll(&readable, 1, (int)(limit_ms - now_ms)) : 0;
        if (ready < 0 && errno != EINTR) {
            return fail(context, strerror(errno));
        }
    }
    return ready > 0 || fail(context, DIRECT_SILENCE);
}

/* ---- reading ---- */

/* Reads a part of an answer, of which `length` bytes have come, and adds it to *length. */
static bool read_part(redisContext *context, uint64_t limit_ms, size_t *length) {
    char bytes[CHUNK];

    if (!wait_until(context, limit_ms)) {
        return false;
    }
    ssize_t count = recv(context->fd, bytes, sizeof(bytes), 0);
    if (count == 0) {
        return fail(context, "Server closed the connection");
    }
    if (count < 0) {
        return fail(context, strerror(errno));
    }
    *length += (size_t)count;
    if (*length > BYTES_MOST) {
        return fail(context, "its answer is too long");
    }
    return redisReaderFeed(context->reader, bytes, (size_t)count) == REDIS_OK ||
           fail(context, DIRECT_NONSENSE);
}

/* Sends everything in the output buffer. */
static bool send_all(redisContext *context) {
    int is_done = 0;

    while (!is_done) {
        if (redisBufferWrite(context, &is_done) == REDIS_ERR) {
            return false;
        }
    }
    return true;
}

static redisReply *read_answer(redisContext *context) {
    uint64_t limit_ms = talk_now_ms() + timeout_of(context);
    void *reply = NULL;
    size_t length = 0;

    while (context->err == 0) {
        if (redisGetReplyFromReader(context, &reply) == REDIS_ERR) {
            fail(context, DIRECT_NONSENSE);
        } else if (reply != NULL) {
            return reply;
        } else {
            read_part(context, limit_ms, &length);
        }
    }
    return NULL;
}

redisReply *answer_next(redisContext *context) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    redisReply *reply = NULL;

    sigaction(SIGPIPE, &ignore, &before); /* a server may close at any time; stdout may not */
    if (context->err == 0 && send_all(context)) {
        reply = read_answer(context);
    }
    sigaction(SIGPIPE, &before, NULL);
    return reply;
}
