/*
 * The happy path: handshake_begin queues all steps in order; each reply takes one off steps_left,
 * and the last one calls on_done.
 *
 * Failures: a refused AUTH or SELECT is fatal: on_refusal reports it, and the step is never
 * completed, so on_done is never called. Any other refused step is completed, since old servers and
 * narrow ACLs may refuse it. on_refusal still reports the refusal if it may be the cause of the
 * connection's end (the server is loading), or if an operator must act; a script that was not
 * loaded goes with its first call instead. Without memory the connection is closed. NULL replies at
 * the end of the connection are ignored: io/net.h notifies the connection's owner of the end.
 */
#include "node/handshake.h"

#include "wire/command.h"

#include <inttypes.h>
#include <stdio.h>

/* The handshake being queued, and its connection. */
struct course {
    struct handshake *handshake;
    struct conn *conn;
    struct bytes *scratch;
    uint64_t now;
};

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

static void on_step_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    const struct handshake_step *step = (struct handshake_step *)request;
    struct handshake *handshake = step->handshake;
    if (reply == NULL) {
        return;
    }
    if (reply->type == REPLY_ERROR && step->script != SCRIPT_NONE) { /* its call carries the text */
        handshake->listener->on_script_refused(owner, step->script);
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

static bool add_step(const struct course *course, enum handshake_need need, unsigned count,
                     const char *const *words) {
    struct handshake *handshake = course->handshake;
    struct handshake_step *step = &handshake->steps[handshake->steps_left];
    bytes_clear(course->scratch);
    command_words(course->scratch, count, words);
    *step = (struct handshake_step){
        .request = {.on_reply = on_step_reply,
                    .sent_at = course->now,
                    .length = course->scratch->length,
                    .load_class = LOAD_OWN},
        .handshake = handshake,
        .need = need,
        .script = SCRIPT_NONE,
    };
    if (course->scratch->failed) {
        conn_close(course->conn, "out of memory");
        return false;
    }
    if (!conn_send(course->conn, &step->request, course->scratch->data, course->scratch->length)) {
        return false; /* out of memory: conn_send has ended the connection */
    }
    handshake->steps_left++;
    return true;
}

#define WORDS(...)                                                                                 \
    sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), (const char *[]) {               \
        __VA_ARGS__                                                                                \
    }

static bool log_in(const struct course *course, const struct uri *uri) {
    if (uri->user != NULL) {
        return add_step(course, HANDSHAKE_REQUIRED, WORDS("AUTH", uri->user, uri->password));
    }
    return uri->password == NULL ||
           add_step(course, HANDSHAKE_REQUIRED, WORDS("AUTH", uri->password));
}

static bool select_db(const struct course *course, uint32_t db) {
    char number[12];
    snprintf(number, sizeof(number), "%" PRIu32, db);
    return db == 0 || add_step(course, HANDSHAKE_REQUIRED, WORDS("SELECT", number));
}

static bool introduce(const struct course *course, const char *name) {
    return (name[0] == '\0' ||
            add_step(course, HANDSHAKE_OPTIONAL, WORDS("CLIENT", "SETNAME", name))) &&
           add_step(course, HANDSHAKE_OPTIONAL,
                    WORDS("CLIENT", "SETINFO", "LIB-NAME", "libredlock")) &&
           add_step(course, HANDSHAKE_OPTIONAL,
                    WORDS("CLIENT", "SETINFO", "LIB-VER", redlock_version()));
}

static void load_scripts(const struct course *course) {
    bool has_room = true;
    for (unsigned i = 0; i < SCRIPT_COUNT && has_room; i++) {
        struct handshake_step *step = &course->handshake->steps[course->handshake->steps_left];
        if (script_infos[i].is_loaded) {
            const char *text = script_text((enum script)i);
            has_room = add_step(course, HANDSHAKE_USEFUL, WORDS("SCRIPT", "LOAD", text));
            step->script = (enum script)i;
        }
    }
}

void handshake_begin(struct handshake *handshake, const struct handshake_listener *listener,
                     enum handshake_purpose purpose, struct conn *conn, const struct uri *uri,
                     const char *name, struct bytes *scratch, uint64_t now) {
    struct course course = {handshake, conn, scratch, now};
    bool is_for_commands = purpose == HANDSHAKE_FOR_COMMANDS; /* channels belong to no database */
    handshake->listener = listener;
    handshake->steps_left = 0;
    if (log_in(&course, uri) && (!is_for_commands || select_db(&course, uri->db)) &&
        introduce(&course, name) && is_for_commands) {
        load_scripts(&course);
    }
}
