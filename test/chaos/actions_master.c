/*
 * The keys of a master are followed through its log, so that each change becomes an action: a
 * command that asked for it, a key that was passed to a waiter, or a deletion.
 */
#include "actions_run.h"
#include "nemesis.h"
#include "parsed_call.h"

#include "wire/push.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCKS_MAX 64 /* of a command */

struct key_state {
    char token[TOKEN_SIZE]; /* "": free */
    int64_t expires_ms;
};

/* A lock of the command that is being executed. */
struct ask {
    uint32_t key;
    char token[TOKEN_SIZE];
    char kind;
    long long ttl_ms;
    bool is_written;
};

struct master {
    struct run *run;
    const struct log *log;
    uint32_t node;
    struct key_state keys[MAX_KEYS];
    int64_t begun_at; /* of the command */
    int64_t last;     /* the instant of the latest line */
    struct ask asks[LOCKS_MAX];
    unsigned ask_count;
};

/* Reads a key's state from the text of a frame. Returns false if the frame is of no such key. */
static bool read_state(const struct run *run, const struct frame *frame, const char *text,
                       uint32_t *key, struct key_state *state) {
    bool is_read = (frame->kind == FRAME_KEY || frame->kind == FRAME_EXPIRED) &&
                   sscanf(text, "%u %40s %" SCNd64, key, state->token, &state->expires_ms) == 3 &&
                   *key < run->options->keys;

    if (is_read && state->token[0] == '-') {
        *state = (struct key_state){0};
    }
    return is_read;
}

static bool is_alive(const struct run *run, const struct key_state *state, int64_t at) {
    return state->token[0] != '\0' && run_unix(run, at) < ns_of_ms(state->expires_ms + 1);
}

static void add_ask(const struct words *words, const struct form *form,
                    const struct parsed_call *call, void *arg) {
    struct master *master = arg;
    struct ask *ask = &master->asks[master->ask_count];
    char kind = parsed_call_asks(form, call);
    long long ttl_ms = 0;

    (void)words;
    if (kind == '\0' || !word_number(call->ttl, &ttl_ms) || ttl_ms == 0 ||
        master->ask_count == LOCKS_MAX) {
        return;
    }
    *ask = (struct ask){.kind = kind, .ttl_ms = ttl_ms};
    snprintf(ask->token, sizeof(ask->token), "%.*s", (int)call->value->length, call->value->text);
    ask->key = (uint32_t)strtoul(call->names[0].text + strlen(KEY_PREFIX), NULL, 10);
    master->ask_count++;
}

/*
 * Returns when the client read its clock for the command, the latest until an instant. 0: its log
 * has none.
 */
static int64_t sent_at(const struct master *master, const struct ask *ask, int64_t until) {
    const struct run *run = master->run;
    const struct sent *sent = run_first_sent(run, ask->token);
    const struct sent *end = run->sent + run->sent_count;
    int64_t at = 0;

    for (; sent != NULL && sent < end && strcmp(sent->token, ask->token) == 0; sent++) {
        if (sent->node == master->node && sent->key == ask->key && sent->kind == ask->kind &&
            sent->ttl_ms == ask->ttl_ms && sent->at <= until) {
            at = sent->at;
        }
    }
    return at;
}

/*
 * Moves on to the instant of a change that was logged at `logged_at`. The server gives a command
 * what it asks for at the reading of its clock, after the command began: the expiry says when.
 */
static void move_to(struct master *master, const struct ask *ask, int64_t expires_ms,
                    int64_t logged_at) {
    int64_t at = logged_at;

    if (ask != NULL) {
        at = run_instant(master->run, ns_of_ms(expires_ms - ask->ttl_ms), logged_at) + 1000;
        at = at > master->begun_at && at <= logged_at ? at : master->begun_at;
    }
    master->last = at > master->last ? at : master->last;
}

/* Writes that the command gave the key what it asked for. */
static void write_exec(struct master *master, struct ask *ask, int64_t expires_ms) {
    struct run *run = master->run;

    ask->is_written = true;
    run_add_line(run, master->last, "x %u %s %c %" PRId64 " %" PRId64 " %u %" PRId64, ask->key,
                 run_name(run, ask->token), ask->kind,
                 sent_at(master, ask, master->last) - run->begun_at, ns_of_ms(ask->ttl_ms),
                 master->node, run_expiry(run, expires_ms));
}

/* Returns whether the rest of the command, from `at`, pushes the key to a waiter in this state. */
static bool is_pushed(const struct master *master, size_t at, const struct key_state *state) {
    struct frame frame = {0};
    struct push push;
    char text[256];

    while (frame.kind != FRAME_COMMAND && (at = log_frame(master->log, at, &frame, text)) != 0) {
        if (frame.kind == FRAME_PUSH && push_read(text, strlen(text), &push) &&
            (int64_t)push.expires_ms == state->expires_ms &&
            memcmp(push.token, state->token, TOKEN_LENGTH) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns whether the state of a key is what the command asked for: its TTL is a whole one. */
static bool is_what_was_asked(const struct master *master, const struct ask *ask, uint32_t key,
                              const struct key_state *state) {
    int64_t begun_ms = run_unix(master->run, master->begun_at) / (int64_t)NS_PER_MS;

    return ask->key == key && strcmp(ask->token, state->token) == 0 &&
           state->expires_ms >= begun_ms + ask->ttl_ms;
}

/* Writes what became of a key, by a frame that ends at `end`. */
static void key_changed(struct master *master, uint32_t key, struct key_state now,
                        const struct frame *frame, size_t end) {
    struct run *run = master->run;
    struct key_state *was = &master->keys[key];
    struct ask *ask = NULL;
    bool is_same = strcmp(was->token, now.token) == 0;
    int64_t at = (int64_t)frame->at_ns;
    /* From Redis 8.0 on, a key may be gone in the last millisecond of its life. */
    bool has_expired =
        frame->kind == FRAME_EXPIRED && run_unix(run, at) >= ns_of_ms(was->expires_ms);

    for (unsigned i = 0; i < master->ask_count; i++) {
        bool is_it = is_what_was_asked(master, &master->asks[i], key, &now);
        ask = is_it ? &master->asks[i] : ask;
    }
    /* A command that releases a key, too, may pass it to the waiter that it puts in the queue. */
    ask = ask != NULL && is_pushed(master, end, &now) ? NULL : ask;
    move_to(master, ask, now.expires_ms, at);
    if (!is_same && !has_expired && is_alive(run, was, at)) {
        run_add_line(run, master->last, "d %u %s %u", key, run_name(run, was->token), master->node);
    }
    if (now.token[0] != '\0' && ask != NULL) {
        write_exec(master, ask, now.expires_ms);
    } else if (now.token[0] != '\0' && (!is_same || was->expires_ms != now.expires_ms)) {
        run_add_line(run, master->last, "p %u %s %u %" PRId64, key, run_name(run, now.token),
                     master->node, run_expiry(run, now.expires_ms));
    }
    *was = now;
}

/* Ends a command: it may have found that a token already has its key, for as long as it asked. */
static void end_command(struct master *master) {
    for (unsigned i = 0; i < master->ask_count; i++) {
        struct ask *ask = &master->asks[i];
        const struct key_state *state = &master->keys[ask->key % MAX_KEYS];

        if (!ask->is_written && is_what_was_asked(master, ask, ask->key, state)) {
            move_to(master, ask, state->expires_ms, master->begun_at);
            write_exec(master, ask, state->expires_ms);
        }
    }
    master->ask_count = 0;
}

/* The keys with which a server began another life. */
struct restored {
    struct key_state keys[MAX_KEYS];
    int64_t at;
    bool is_empty;
};

static void read_restored(const struct master *master, size_t begin, struct restored *restored) {
    struct frame frame = {0};
    char text[256];
    uint32_t key;

    *restored = (struct restored){.is_empty = true};
    while (frame.kind != FRAME_COMMAND) {
        struct key_state state;
        size_t end = log_frame(master->log, begin, &frame, text);

        if (end == 0) {
            return;
        }
        if (read_state(master->run, &frame, text, &key, &state)) {
            restored->keys[key] = state;
            restored->is_empty &= state.token[0] == '\0';
        }
        restored->at = (int64_t)frame.at_ns;
        begin = end;
    }
}

/* Returns whether the frames of a life from `begin` to `end` left the keys that were restored. */
static bool was_restored(const struct master *master, size_t begin, size_t end,
                         const struct restored *restored) {
    static struct key_state left[MAX_KEYS];
    struct frame frame;
    char text[256];
    uint32_t key;

    memcpy(left, master->keys, sizeof(left));
    while (begin < end) {
        struct key_state state;

        begin = log_frame(master->log, begin, &frame, text);
        if (read_state(master->run, &frame, text, &key, &state)) {
            left[key] = state;
        }
    }
    for (key = 0; key < master->run->options->keys; key++) {
        const struct key_state *found = &restored->keys[key];
        bool was_there = is_alive(master->run, &left[key], restored->at);

        if (was_there != (found->token[0] != '\0') ||
            (was_there && (strcmp(left[key].token, found->token) != 0 ||
                           left[key].expires_ms != found->expires_ms))) {
            return false;
        }
    }
    return true;
}

/*
 * Returns the end of the frames that count in the life from `begin` to `next`, where the server was
 * killed. Its last commands were answered to nobody if they are not in the append-only file. Under
 * the nemesis that removes that file, a server that begins empty has lost its memory.
 */
static size_t end_of_life(const struct master *master, size_t begin, size_t next,
                          bool *has_forgotten) {
    static struct restored restored;
    size_t commands[64]; /* the latest */
    size_t count = 0;
    struct frame frame;
    char text[256];

    read_restored(master, next, &restored);
    *has_forgotten =
        restored.is_empty && (master->run->options->nemeses & NEMESIS_BIT(AMNESIA)) != 0;
    if (*has_forgotten) {
        return next;
    }
    for (size_t at = begin, end; at < next; at = end) {
        end = log_frame(master->log, at, &frame, text);
        if (frame.kind == FRAME_COMMAND) {
            commands[count++ % 64] = at;
        }
    }
    size_t end = next;
    for (size_t back = 0; back <= count && back <= 64; back++) {
        end = back == 0 ? next : commands[(count - back) % 64];
        if (was_restored(master, begin, end, &restored)) {
            return end;
        }
    }
    return next;
}

/* Returns where the next life of the server begins in its log, or the end of the log. */
static size_t next_life(const struct log *log, size_t at) {
    struct frame frame;
    char text[256];
    size_t end;

    while ((end = log_frame(log, at, &frame, text)) != 0 && frame.kind != FRAME_STARTED) {
        at = end;
    }
    return at;
}

static void add_lines_of_life(struct master *master, size_t begin, size_t end) {
    static struct words words;
    struct frame frame;
    struct key_state state;
    char text[256];
    uint32_t key;

    for (size_t at = begin, next; at < end; at = next) {
        next = log_frame(master->log, at, &frame, text);
        if (frame.kind == FRAME_COMMAND) {
            end_command(master);
            master->begun_at = (int64_t)frame.at_ns;
            if (words_read(&words, master->log->bytes + at + sizeof(frame), frame.length) != 0) {
                parsed_call_each(&words, add_ask, master);
            }
        } else if (read_state(master->run, &frame, text, &key, &state)) {
            key_changed(master, key, state, &frame, next);
        }
    }
    end_command(master);
}

/* Writes that a master has lost its memory: when it executed its last command, or later. */
static void forget(struct master *master) {
    for (uint32_t key = 0; key < master->run->options->keys; key++) {
        run_add_line(master->run, master->last, "f %u %u", key, master->node);
        master->keys[key] = (struct key_state){0};
    }
}

void actions_master(struct run *run, const struct log *log, uint32_t node) {
    static struct master master;
    struct frame frame;
    char text[256];

    master = (struct master){.run = run, .log = log, .node = node, .last = run->begun_at};
    for (size_t begin = next_life(log, 0); begin < log->length;) {
        size_t first = log_frame(log, begin, &frame, text);
        size_t next = first != 0 ? next_life(log, first) : 0;
        bool has_forgotten = false;

        if (first == 0) {
            return;
        }
        size_t end = next < log->length ? end_of_life(&master, first, next, &has_forgotten) : next;
        add_lines_of_life(&master, first, end);
        if (has_forgotten) {
            forget(&master);
        }
        begin = next;
    }
}
