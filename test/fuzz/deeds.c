#include "deeds.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "peers.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the world ---- */

static void turns(struct run *run, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        app_turn(&run->app);
    }
}

static void say_bytes(struct run *run, unsigned peer) {
    size_t length;
    unsigned most = input_byte(&run->input);
    const char *bytes = input_take(&run->input, most, &length);
    peers_say(peer, bytes, length);
}

static void say_phrase(struct run *run, unsigned peer) {
    static const char *const phrases[] = {
        "+OK\r\n",
        "$-1\r\n",
        "$1\r\ny\r\n",
        "$1\r\nm\r\n",
        "$4\r\nh700\r\n",
        "$2\r\nyy\r\n",
        "$1\r\nt\r\n",
        "$1\r\np\r\n",
        "-NOSCRIPT No matching script.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-NOAUTH Authentication required.\r\n",
        "-ERR max number of clients reached\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-ERR\r\n",
        ":1\r\n",
        ":-9223372036854775808\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*2\r\n+OK\r\n",
        "*1000000000\r\n",
        "$536870912\r\n",
        "$0\r\n\r\n",
        "+\r\n",
        "-\r\n",
        "$21\r\nh99999999999999999999\r\n",
        "%1\r\n+a\r\n+b\r\n",
        ",1.5\r\n",
        "#t\r\n",
        "_\r\n",
        ">2\r\n+a\r\n+b\r\n",
    };
    const char *phrase = phrases[input_below(&run->input, sizeof(phrases) / sizeof(phrases[0]))];
    for (unsigned i = input_below(&run->input, 8); i < 8; i++) {
        peers_say(peer, phrase, strlen(phrase));
    }
}

/* Sends an answer that is longer than any that is accepted. */
static void say_much(struct run *run, unsigned peer) {
    static char much[20000];
    static const char *const beginnings[] = {"+", "-", "$20000\r\n", "$100000\r\n", ""};
    const char *beginning = beginnings[input_below(&run->input, 5)];
    memset(much, 'a' + (int)input_below(&run->input, 26), sizeof(much));
    peers_say(peer, beginning, strlen(beginning));
    for (unsigned i = input_below(&run->input, 8); i < 8; i++) {
        peers_say(peer, much, sizeof(much));
    }
    peers_say(peer, "\r\n", 2);
}

/* Answers all commands of every peer, until no more come. */
static void answer_all(struct run *run, enum manner manner) {
    unsigned answered = 1;
    for (unsigned i = 0; i < 6 && answered > 0; i++) {
        answered = 0;
        app_turn(&run->app);
        for (unsigned peer = 0; peer < run->peers; peer++) {
            answered += peers_answer(peer, manner, 64);
        }
    }
    app_turn(&run->app);
}

static void pass(struct run *run) {
    unsigned kind = input_byte(&run->input);
    uint64_t ms = UINT64_C(1) << kind % 17; /* 1 min at most */
    if (kind == 255) {
        ms = UINT64_C(30) * 86400 * 1000;
    }
    world_pass(nanos_from_ms(ms));
    turns(run, 1 + (kind >= 128));
}

/* ---- messages ---- */

/*
 * Returns a time of the servers' clocks, which agree with the client's unless the input decides
 * otherwise.
 */
static uint64_t server_us(struct input *input, unsigned kind) {
    uint64_t now_us = clock_now() / 1000;
    return kind & 1 ? now_us + input_number(input) : now_us;
}

/* Pushes a key to the newest waiter of a peer, or for a token that no request has. */
static void push(struct run *run, unsigned peer, unsigned kind) {
    const struct peers_waiter *waiter = peers_waiter(peer);
    char text[256];
    uint64_t us = server_us(&run->input, kind);
    uint64_t left_ms = kind & 2 ? input_number(&run->input) : 1000;
    uint64_t number = kind & 4 ? input_number(&run->input) : 0;
    const char *token = kind & 8 ? "00112233445566778899aabbccddeeff00112233" : waiter->token;
    const char *names = kind & 16 ? (kind & 128 ? "+1:b1:c" : " b") : waiter->names;
    uint64_t till_ms = kind & 32 ? 0 : us / 1000 + left_ms;
    int length = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s%s", till_ms,
                          us, number, token, names);
    peers_publish(peer, text, kind & 64 ? (size_t)length / 2 : (size_t)length);
}

static void say_of_channel(struct run *run, unsigned peer) {
    static const char *const phrases[] = {
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n",
        "-NOPERM this user has no permissions to access one of the channels\r\n",
        "*3\r\n$7\r\nmessage\r\n$-1\r\n$-1\r\n",
        ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*3\r\n$7\r\nmessage\r\n",
        "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\na\r\n",
        "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$9\r\norders:42\r\n",
        "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n",
        "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n",
    };
    const char *phrase = phrases[input_below(&run->input, sizeof(phrases) / sizeof(phrases[0]))];
    peers_say_to_channel(peer, phrase, strlen(phrase));
}

/* Pushes the key to the waiters of all peers, which gives a quorum. */
static void push_all(struct run *run, unsigned kind) {
    for (unsigned i = 0; i < run->peers; i++) {
        push(run, i, kind);
    }
}

static void deed_of_channel(struct run *run) {
    struct input *input = &run->input;
    unsigned kind = input_byte(input);
    unsigned peer = kind / 8 % run->peers;
    size_t length;
    const char *bytes;
    switch (kind % 8) {
    case 0:
        push(run, peer, 0);
        break;
    case 1:
        push(run, peer, input_byte(input));
        break;
    case 2:
        push_all(run, kind & 128 ? input_byte(input) : 0);
        break;
    case 3:
        bytes = input_take(input, input_byte(input), &length);
        peers_publish(peer, bytes, length);
        break;
    case 4:
        bytes = input_take(input, input_byte(input), &length);
        peers_say_to_channel(peer, bytes, length);
        break;
    case 5:
        say_of_channel(run, peer);
        break;
    case 6:
        peers_cut_messages(peer);
        break;
    case 7:
        answer_all(run, MANNER_HELD);
        break;
    }
    turns(run, 1);
}

/* ---- any of these ---- */

void deed_of_world(struct run *run) {
    struct input *input = &run->input;
    unsigned kind = input_byte(input);
    unsigned peer = kind / 16 % run->peers;
    switch (kind % 16) {
    case 0:
        say_bytes(run, peer);
        app_turn(&run->app);
        break;
    case 1:
        say_bytes(run, peer); /* followed by other bytes */
        break;
    case 2:
        say_phrase(run, peer);
        app_turn(&run->app);
        break;
    case 3:
        say_much(run, peer);
        turns(run, 2);
        break;
    case 4:
    case 5:
        peers_answer(peer, (enum manner)input_below(input, MANNER_COUNT), 1);
        turns(run, kind % 16 == 4);
        break;
    case 6:
    case 7:
        peers_answer(peer, (enum manner)input_below(input, MANNER_COUNT), 64);
        turns(run, kind % 16 == 6);
        break;
    case 8:
        answer_all(run, (enum manner)input_below(input, MANNER_COUNT));
        break;
    case 9:
        answer_all(run, MANNER_YES);
        break;
    case 10:
        peers_cut(peer);
        turns(run, kind >= 128);
        break;
    case 11:
        peers_listen(peer, kind >= 128);
        break;
    case 12:
        peers_set_chunk(input_byte(input));
        break;
    case 13:
        pass(run);
        break;
    case 14:
        if (kind < 64) {
            deed_of_channel(run);
        } else {
            world_pass(kind / 16 * NANOS_PER_MS); /* while the application is busy elsewhere */
        }
        break;
    case 15:
        turns(run, 1 + kind / 64);
        break;
    }
}

/* ---- locks ---- */

struct hold *deed_pick(struct run *run) {
    unsigned back = input_byte(&run->input);
    if (run->app.count == 0) {
        return NULL;
    }
    struct hold *hold = &run->app.holds[run->app.count - 1 - back % run->app.count];
    return hold_is_usable(hold) ? hold : NULL;
}

static const char *const keys[] = {"a", "b", "orders:42", "c"};

static void acquire(struct run *run) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    unsigned kind = input_byte(&run->input);
    unsigned more = input_byte(&run->input);
    if (run->app.count == APP_HOLDS_MAX) {
        return;
    }
    request.key = keys[kind % 4];
    request.ttl_ms = UINT64_C(10) << more % 10; /* 10 ms to 5 s */
    request.watchdog = kind & 4;
    request.max_hold_ms = request.watchdog && (kind & 8) ? 1000 : 0;
    request.retries = kind & 16 ? more >> 4 : 0;
    request.wait_ms = kind & 32 ? UINT64_C(1) << (more >> 4) : 0;
    request.on_lost = kind & 64 ? (redlock_cb *)1 : NULL;
    request.fenced = more % 7 == 3;
    request.mode = more % 5 == 1   ? REDLOCK_READER
                   : more % 5 == 2 ? REDLOCK_WRITER
                                   : REDLOCK_EXCLUSIVE;
    request.watch_key = more % 11 < 4 && request.watchdog && request.mode != REDLOCK_READER;
    app_acquire(&run->app, &request, kind & 128);
}

void deed_of_lock(struct run *run) {
    struct input *input = &run->input;
    unsigned kind = input_byte(input);
    if (kind % 4 == 0) {
        acquire(run);
        return;
    }
    struct hold *hold = deed_pick(run);
    if (hold == NULL) {
        return;
    }
    switch (kind % 4) {
    case 1:
        app_extend(hold, kind & 4 ? 0 : UINT64_C(10) << kind / 8 % 12, true);
        break;
    case 2:
        app_release(hold, !(kind & 4));
        break;
    default:
        app_cancel(hold);
        break;
    }
}
