/* What clients send, learn and report; and by which lists of nodes they count. */
#include "action_lines.h"

#include "lock/lock.h"
#include "round/operation.h"

#include <inttypes.h>
#include <stdlib.h>

/* Records the lists by which the client counts the votes of a round. */
static void record_lists(const struct link *link, const struct words *words, struct token *token,
                         char kind) {
    const struct checker *checker = link->network->world->checker;
    /* Votes of a top-up do not count: it may be sent while a round of other lists is under way. */
    bool is_top_up = kind == 'T' && token->is_acquired;
    uint32_t now = checker->lists[link->process->index];
    uint32_t next = checker->next_lists[link->process->index];
    if (!is_top_up && !parsed_call_is_top_up(words) &&
        (token->round_list != now || token->round_next_list != next)) {
        token->earlier_list = token->round_list;
        token->earlier_next_list = token->round_next_list;
        token->round_list = now;
        token->round_next_list = next;
    }
}

void actions_move(const struct event_base *process) {
    struct actions *actions = actions_of(process->world);
    if (actions != NULL && actions->former[process->index].until != process->world->now) {
        const struct checker *checker = checker_by(actions);
        actions->former[process->index].now = checker->lists[process->index];
        actions->former[process->index].next = checker->next_lists[process->index];
        actions->former[process->index].until = process->world->now;
    }
}

/* Records that a client gives up a token that no lock has. The model's End. */
static void give_up(struct actions *actions, uint32_t number, unsigned key) {
    struct token *token = &actions->network->world->checker->tokens[number];
    bool is_held = check_hold_of(checker_by(actions), number) != NULL || token->is_notification_due;
    if (!is_held && !(token->given_up >> key & 1)) {
        token->given_up |= UINT32_C(1) << key;
        action_begin(actions, 'e');
        action_write_token(actions, key, number);
        action_end(actions);
    }
}

static void call_sent(const struct words *words, const struct form *form,
                      const struct parsed_call *call, void *arg) {
    struct link *link = arg;
    struct actions *actions = actions_of(link->network->world);
    const struct checker *checker = checker_by(actions);
    uint32_t number = check_token_of(checker, call->value->text, call->value->length);
    char kind = parsed_call_asks(form, call);
    long long ttl_ms = 0;
    if (number == NO_TOKEN) {
        return;
    }
    if (kind != '\0') {
        word_number(call->ttl, &ttl_ms);
        record_lists(link, words, &checker->tokens[number], kind);
    }
    for (unsigned i = 0; i < call->count; i++) {
        unsigned key = check_key_of(checker, &call->names[i]);
        if (key < checker->key_count && kind != '\0') {
            action_begin(actions, 's');
            action_write_token(actions, key, number);
            fprintf(actions->file, " %c %lld", kind, ttl_ms * (long long)MS * FEMTOS);
            action_end(actions);
        } else if (key < checker->key_count && call->releases) {
            give_up(actions, number, key);
        }
    }
}

void actions_sent(struct link *link, const struct words *words) {
    struct actions *actions = actions_of(link->network->world);
    if (actions == NULL) {
        return;
    }
    if (link->sent_count == link->sent_capacity) {
        link->sent_capacity = link->sent_capacity * 2 + 64;
        link->sent = realloc(link->sent, link->sent_capacity * sizeof(*link->sent));
        if (link->sent == NULL) {
            abort();
        }
    }
    link->sent[link->sent_count++] = action_process_clock(actions, link->process);
    parsed_call_each(words, call_sent, link);
}

/* ---- what clients learn, and report ---- */

void actions_pushed(struct event_base *process, unsigned server, uint32_t token, unsigned key,
                    uint64_t expires_ms) {
    struct actions *actions = actions_of(process->world);
    if (actions != NULL) {
        action_begin(actions, 'r');
        action_write_token(actions, key, token);
        action_write_place(actions, server, (int64_t)expires_ms);
        action_end(actions);
    }
}

void actions_parted(struct event_base *process, uint32_t token) {
    struct actions *actions = actions_of(process->world);
    uint32_t keys = actions != NULL ? checker_by(actions)->tokens[token].keys : 0;
    for (; keys != 0; keys &= keys - 1) {
        action_begin(actions, 'l');
        action_write_token(actions, (unsigned)__builtin_ctz(keys), token);
        action_end(actions);
    }
}

/* Returns a mask of the votes that a report counts; 0 if they may be of several rounds. */
static uint32_t votes_of(const struct checker *checker, const struct token *token,
                         const redlock_lock *lock) {
    const struct operation *operation = lock->operation;
    unsigned process = token->process->index;
    /* A report has no votes of nodes that have left the lists since the round. */
    bool was_moved = token->round_list != checker->lists[process] ||
                     token->round_next_list != checker->next_lists[process];
    if (was_moved || operation == NULL || operation->round.verdict == ROUND_OPEN) {
        return 0;
    }
    uint32_t granted = check_voters(lock, REDLOCK_VOTE_GRANTED);
    /* A renewal that has failed counts once late grants complete its quorum. */
    bool is_late = operation->round.verdict == ROUND_NO;
    return granted | (is_late ? check_voters(lock, REDLOCK_VOTE_LATE) : 0);
}

/* Two pairs of lists by which a validity may be counted. */
static void write_lists(const struct actions *actions, const uint32_t lists[4]) {
    fprintf(actions->file, " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32, lists[0], lists[1],
            lists[2], lists[3]);
}

/*
 * Records the lists by which a round has counted: it may have begun before they changed, and the
 * next one may have begun since.
 */
static void record_counted(struct actions *actions, const struct hold *hold, struct token *token) {
    unsigned process = hold->process->index;
    const struct operation *operation = hold->lock->operation;
    bool began_before =
        operation != NULL &&
        actions->former[process].until >= tempo_true(&hold->process->clock, operation->round.start);
    token->counted_end = hold->end;
    token->counted[0] = token->round_list;
    token->counted[1] = token->round_next_list;
    token->counted[2] = began_before ? actions->former[process].now : token->earlier_list;
    token->counted[3] = began_before ? actions->former[process].next : token->earlier_next_list;
}

/* Returns whether a server has evicted one of the keys, which no client notices. */
static bool was_evicted(const struct checker *checker, const struct hold *hold) {
    bool found = false;
    for (unsigned i = 0; i < checker->network->server_count; i++) {
        found |= check_evicted_until(checker, i, hold->keys) > checker->world->now;
    }
    return found;
}

void actions_held(const struct hold *hold, bool is_handed) {
    struct actions *actions = actions_of(hold->process->world);
    if (actions == NULL) {
        return;
    }
    const struct checker *checker = checker_by(actions);
    struct token *token = &checker->tokens[hold->token];
    if (hold->end != token->counted_end) { /* otherwise the next lock has the validity of before */
        record_counted(actions, hold, token);
    }
    /* By the lists that were counted: the round may rely on a node that has left them since. */
    struct hold copy = *hold;
    check_excuse_by(checker, &copy, token->counted[0], token->counted[1]);
    bool is_in_doubt = check_is_excused(checker, &copy) || was_evicted(checker, hold);
    for (uint32_t rest = hold->keys; rest != 0; rest &= rest - 1) {
        /* The servers' loss of memory may be one that no client can notice. */
        action_begin(actions, is_in_doubt ? 'u' : 'h');
        action_write_token(actions, (unsigned)__builtin_ctz(rest), hold->token);
        write_lists(actions, token->counted);
        fprintf(actions->file, " %" PRIu32 " %" PRId64,
                is_handed ? 0 : votes_of(checker, token, hold->lock),
                action_process_instant(actions, hold->process, hold->end));
        action_end(actions);
    }
}
