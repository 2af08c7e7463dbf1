#include "parsed_call.h"

/* The texts are long, so they are compared only if there is one. */
bool parsed_call_is_of(const struct words *words, enum script script) {
    if (words->count <= 3) {
        return false;
    }
    return word_is(&words->word[0], "EVALSHA")
               ? word_is(&words->word[1], script_sha(script))
               : word_is(&words->word[0], "EVAL") && word_is(&words->word[1], script_text(script));
}

const struct form *parsed_call_form(const struct words *words) {
    static const struct form forms[] = {
        {SCRIPT_RELEASE, 1, 1, false, 0},      {SCRIPT_RENEW, 1, 2, false, 0},
        {SCRIPT_STAY, 1, 2, false, 0},         {SCRIPT_PERMIT, 1, 5, false, 0},
        {SCRIPT_TAKE, 0, 7, false, 0},         {SCRIPT_RENEW_FENCED, 2, 4, false, 0},
        {SCRIPT_SHARE, 3, 3, true, 0},         {SCRIPT_SHARE_RENEW, 2, 2, true, 0},
        {SCRIPT_SHARE_RELEASE, 2, 1, true, 0}, {SCRIPT_WRITE, 3, 3, false, 0},
        {SCRIPT_WRITE_FENCED, 4, 5, false, 0}, {SCRIPT_QUEUE, 1, 6, false, 1},
        {SCRIPT_LEAVE, 1, 2, false, 0},        {SCRIPT_SHARE_QUEUE, 3, 6, true, 1},
        {SCRIPT_SHARE_LEAVE, 2, 2, true, 0},   {SCRIPT_QUEUE_SET, 0, 7, false, 1},
        {SCRIPT_QUEUE_PERMIT, 1, 7, false, 1}, {SCRIPT_PERMIT_RELEASE, 1, 2, false, 0},
        {SCRIPT_PASS, 1, 1, false, 0},
    };
    for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (parsed_call_is_of(words, forms[i].script)) {
            return &forms[i];
        }
    }
    return NULL;
}

bool parsed_call_is_queue(const struct form *form) {
    return form->leading > 0;
}

struct call_position parsed_call_first(const struct words *words, const struct form *form) {
    long long keys = 0;
    word_number(&words->word[2], &keys);
    unsigned end = 3 + (unsigned)keys;
    return (struct call_position){.key = 3, .argument = end + form->leading, .key_end = end};
}

/* Returns whether the lock of a call that states the number of keys has counters after its keys. */
static bool has_counters(const struct form *form, const struct word *arguments) {
    return form->script == SCRIPT_TAKE ? word_is(&arguments[3], "1") : word_is(&arguments[4], "g");
}

/* Returns the ticket of a lock in a call that requests entries. */
static const struct word *ticket_of(const struct form *form, const struct word *arguments) {
    return &arguments[form->script == SCRIPT_QUEUE_SET ? 6 : 5];
}

bool parsed_call_is_top_up(const struct words *words) {
    const struct form *form = parsed_call_form(words);
    return form != NULL && form->script == SCRIPT_TAKE &&
           word_is(&words->word[parsed_call_first(words, form).argument + 5], "0");
}

bool parsed_call_is_release(enum script script) {
    return script == SCRIPT_RELEASE || script == SCRIPT_LEAVE || script == SCRIPT_STAY ||
           script == SCRIPT_SHARE_RELEASE || script == SCRIPT_SHARE_LEAVE ||
           script == SCRIPT_PERMIT_RELEASE;
}

/* Returns whether a call of SCRIPT_QUEUE carries the release of a lock. */
static bool is_carried(const struct form *form, const struct word *arguments) {
    return form->script == SCRIPT_QUEUE && word_is(&arguments[3], "-");
}

/* SCRIPT_TAKE and SCRIPT_QUEUE_SET state how many keys a lock has, and whether it has counters. */
bool parsed_call_next(const struct words *words, const struct form *form, struct call_position *at,
                      struct parsed_call *call) {
    const struct word *arguments = &words->word[at->argument];
    long long count = 1;
    if (at->key >= at->key_end || at->argument + form->arguments > words->count ||
        (form->keys == 0 && !word_number(&arguments[2], &count))) {
        return false;
    }
    *call = (struct parsed_call){
        .names = &words->word[at->key],
        .count = (unsigned)count,
        .value = &arguments[0],
        .ttl = &arguments[1],
        .ticket = parsed_call_is_queue(form) ? ticket_of(form, arguments) : NULL,
        .is_reader = form->is_reader,
        .releases = parsed_call_is_release(form->script) || is_carried(form, arguments),
        .asks_for_entry = parsed_call_is_queue(form) && !is_carried(form, arguments) &&
                          words->word[at->key_end].length > 0,
        .may_repeat = true};
    unsigned names = form->keys == 0 && has_counters(form, arguments) ? 2 : 1;
    at->key += form->keys != 0 ? form->keys : (unsigned)count * names;
    at->argument += form->arguments;
    return true;
}

/* ---- all locks of a command ---- */

char parsed_call_asks(const struct form *form, const struct parsed_call *call) {
    bool renews =
        form != NULL && (form->script == SCRIPT_RENEW || form->script == SCRIPT_RENEW_FENCED);
    if (renews) {
        return 'R';
    }
    return form == NULL || (script_takes(form->script) && !call->releases) ? 'T' : '\0';
}

/* Returns the parts of a SET as a parsed call. */
static struct parsed_call call_of_set(const struct words *words) {
    struct parsed_call call = {.names = &words->word[1], .count = 1, .value = &words->word[2]};
    for (unsigned i = 3; i + 1 < words->count; i++) {
        call.ttl = word_is(&words->word[i], "PX") ? &words->word[i + 1] : call.ttl;
    }
    return call;
}

void parsed_call_each(const struct words *words, on_parsed_call *on, void *arg) {
    struct parsed_call call;
    if (word_is(&words->word[0], "SET") && words->count >= 5) {
        call = call_of_set(words);
        on(words, NULL, &call, arg);
        return;
    }
    const struct form *form = parsed_call_form(words);
    struct call_position at = {0};
    if (form != NULL && form->script != SCRIPT_PASS) {
        at = parsed_call_first(words, form);
        while (parsed_call_next(words, form, &at, &call)) {
            on(words, form, &call, arg);
        }
    }
}
