/*
 * The happy path: handshake_begin and handshake_ask queue all steps in order; each reply takes one
 * off steps_left, and the last one calls on_done.
 *
 * Failures: a refused AUTH or SELECT is fatal: on_refusal reports it, and the step is never
 * completed, so on_done is never called. Any other refused step is completed, since old servers and
 * narrow ACLs may refuse it. on_refusal still reports the refusal if it may be the cause of the
 * connection's end (the server is loading), or if an operator must act; a script that is neither
 * found nor loaded goes with its first call. Without memory the connection is closed. NULL replies
 * at the end of the connection are ignored: io/net.h notifies the connection's owner of the end.
 */
#include "node/handshake.h"

#include "wire/command.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * Returns whether to report a refusal to the listener. An ACL that forbids a useful step is the
 * operator's choice: then calls carry the scripts' texts.
 */
static bool is_of_weight(enum handshake_need need, const struct reply *reply) {
    enum reply_error meaning = reply_classify(reply);
    return need == HANDSHAKE_REQUIRED || meaning == REPLY_ERROR_TRY_LATER ||
           (need == HANDSHAKE_USEFUL && reply_is_for_operators(meaning) &&
            !reply_is_forbidden(reply));
}

#define WORDS(...)                                                                                 \
    sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), (const char *[]) {               \
        __VA_ARGS__                                                                                \
    }

/* Sends the command of a step. Returns false if the connection is ending, or without memory. */
static bool send_step(struct handshake_step *step, uint64_t now, unsigned count,
                      const char *const *words) {
    const struct handshake *handshake = step->handshake;
    struct bytes *scratch = &handshake->context->scratch;
    bytes_clear(scratch);
    command_words(scratch, count, words);
    step->request.sent_at = now;
    step->request.length = scratch->length;
    if (scratch->failed) {
        conn_close(handshake->conn, "out of memory");
        return false;
    }
    /* It fails only when out of memory: then it has ended the connection. */
    return conn_send(handshake->conn, &step->request, scratch->data, scratch->length);
}

static void take_script_answer(const struct handshake_step *step, void *owner,
                               const struct reply *reply) {
    struct handshake *handshake = step->handshake;
    if (reply->type != REPLY_ERROR) {
        handshake->listener->on_script_found(owner, step->script);
    } else if (reply_lacks_script(reply)) { /* after any other error it cannot be loaded, either */
        handshake->missing |= UINT32_C(1) << step->script;
    }
}

static void on_step_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct handshake_step *step = (struct handshake_step *)request;
    struct handshake *handshake = step->handshake;
    if (reply == NULL) {
        return;
    }
    if (step->script != SCRIPT_NONE) {
        take_script_answer(step, owner, reply);
    }
    if (reply->type == REPLY_ERROR && is_of_weight(step->need, reply)) {
        bool is_fatal = step->need == HANDSHAKE_REQUIRED;
        handshake->listener->on_refusal(owner, reply, is_fatal);
        if (is_fatal) {
            return; /* steps_left never gets to 0 */
        }
    }
    if (--handshake->steps_left == 0) {
        handshake->listener->on_done(owner);
    }
}

static bool add_step(struct handshake *handshake, enum handshake_need need, uint64_t now,
                     unsigned count, const char *const *words) {
    struct handshake_step *step = &handshake->steps[handshake->steps_left];
    *step = (struct handshake_step){
        .request = {.on_reply = on_step_reply, .load_class = LOAD_OWN},
        .handshake = handshake,
        .need = need,
        .script = SCRIPT_NONE,
    };
    if (!send_step(step, now, count, words)) {
        return false;
    }
    handshake->steps_left++;
    return true;
}

static bool log_in(struct handshake *handshake, const struct uri *uri, uint64_t now) {
    if (uri->user != NULL) {
        return add_step(handshake, HANDSHAKE_REQUIRED, now,
                        WORDS("AUTH", uri->user, uri->password));
    }
    return uri->password == NULL ||
           add_step(handshake, HANDSHAKE_REQUIRED, now, WORDS("AUTH", uri->password));
}

static bool select_db(struct handshake *handshake, uint32_t db, uint64_t now) {
    char number[12];
    snprintf(number, sizeof(number), "%" PRIu32, db);
    return db == 0 || add_step(handshake, HANDSHAKE_REQUIRED, now, WORDS("SELECT", number));
}

static bool introduce(struct handshake *handshake, enum handshake_purpose purpose, uint64_t now) {
    const char *name = handshake->context->name;
    if (name[0] != '\0' &&
        !add_step(handshake, HANDSHAKE_OPTIONAL, now, WORDS("CLIENT", "SETNAME", name))) {
        return false;
    }
    /* One connection with the library's name is enough; the other needs a step that is answered. */
    if (purpose == HANDSHAKE_FOR_MESSAGES) {
        return add_step(handshake, HANDSHAKE_OPTIONAL, now, WORDS("CLIENT", "ID"));
    }
    return add_step(handshake, HANDSHAKE_OPTIONAL, now,
                    WORDS("CLIENT", "SETINFO", "LIB-NAME", "libredlock")) &&
           add_step(handshake, HANDSHAKE_OPTIONAL, now,
                    WORDS("CLIENT", "SETINFO", "LIB-VER", redlock_version()));
}

void handshake_begin(struct handshake *handshake, const struct handshake_listener *listener,
                     struct context *context, enum handshake_purpose purpose, struct conn *conn,
                     const struct uri *uri, uint64_t now) {
    bool is_for_commands = purpose == HANDSHAKE_FOR_COMMANDS; /* channels belong to no database */
    handshake->listener = listener;
    handshake->context = context;
    handshake->conn = conn;
    handshake->steps_left = 0;
    handshake->missing = 0;
    if (log_in(handshake, uri, now) && (!is_for_commands || select_db(handshake, uri->db, now))) {
        introduce(handshake, purpose, now);
    }
}

/* Queues a call without keys for each script: by SHA-1, or with the text. */
static void call_scripts(struct handshake *handshake, uint32_t scripts, bool with_text,
                         uint64_t now) {
    handshake->missing = 0;
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        enum script script = (enum script)i;
        if (!(scripts >> i & 1)) {
            continue;
        }
        struct handshake_step *step = &handshake->steps[handshake->steps_left];
        const char *command = with_text ? "EVAL" : "EVALSHA";
        const char *name = with_text ? script_text(script) : script_sha(script);
        if (!add_step(handshake, HANDSHAKE_USEFUL, now, WORDS(command, name, "0"))) {
            return;
        }
        step->script = script;
    }
}

uint32_t handshake_scripts(const struct context *context) {
    uint32_t scripts = 0;
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        enum script_delivery delivery = script_infos[i].delivery;
        bool is_called = (context->scripts_called >> i & 1) != 0;
        bool is_needed = delivery == SCRIPT_ASKED || (delivery == SCRIPT_TEXTED && is_called);
        scripts |= (uint32_t)is_needed << i;
    }
    return scripts;
}

void handshake_ask(struct handshake *handshake, uint32_t scripts, uint64_t now) {
    call_scripts(handshake, scripts, false, now);
}

void handshake_load(struct handshake *handshake, uint32_t scripts, uint64_t now) {
    call_scripts(handshake, scripts, true, now);
}
