/*
 * A node's actions are derived from its keys before and after each command: so whatever a script
 * did, the checker learns what has become of the key. A key that its former owner has given up may
 * be left for a while (min_hold_ms). The model keeps it for its whole life, and its Delete is
 * written when the key turns out to be gone.
 *
 * Foreign clients are one more client, with the clock of the first process.
 */
#include "action_lines.h"

#include <inttypes.h>
#include <string.h>

/* The token of a foreign client's key. */
#define FOREIGN_TOKEN (NO_TOKEN - 1)

/* A lock of a command. */
struct ask {
    uint32_t token;
    char kind; /* 'T': takes the key; 'R': only renews it */
    int64_t ttl_ms;
};

static bool is_alive(const struct state *state, int64_t now_ms) {
    return state->token != NO_TOKEN && (state->expires_ms < 0 || now_ms <= state->expires_ms);
}

/* Looks at a key without removing it if it has expired, as a lookup by the store would. */
static struct state look(const struct actions *actions, const struct master *master, unsigned key) {
    const struct checker *checker = checker_by(actions);
    const struct store *store = &master->store;
    struct state state = {NO_TOKEN, 0};
    for (unsigned i = 0; i < store->bucket_count; i++) {
        for (const struct store_key *at = store->buckets[i]; at != NULL; at = at->next) {
            const struct word name = {at->name, at->name_length};
            if (at->db == checker->db && word_is(&name, checker->keys[key])) {
                uint32_t number = at->type == STORE_STRING
                                      ? check_token_of(checker, at->value, at->value_length)
                                      : NO_TOKEN;
                state.token = number != NO_TOKEN ? number : FOREIGN_TOKEN;
                state.expires_ms = at->expires_ms;
            }
        }
    }
    return is_alive(&state, master_now_ms(master)) ? state : (struct state){NO_TOKEN, 0};
}

/* Writes that a foreign client ends, and that its key is gone. */
static void end_foreign(struct actions *actions, unsigned server, unsigned key) {
    unsigned process = actions->plan->processes;
    unsigned foreign = actions->shadows[server][key].foreign;
    action_begin(actions, 'e');
    fprintf(actions->file, " %u %u.%u\n", key, process, foreign);
    fprintf(actions->file, "d %u %u.%u %u\n", key, process, foreign, server);
}

/* Writes that a foreign client sets the key. */
static void set_foreign(struct actions *actions, unsigned server, unsigned key) {
    struct shadow *shadow = &actions->shadows[server][key];
    unsigned process = actions->plan->processes;
    int64_t now = action_process_clock(actions, actions->bases[0]);
    shadow->foreign = actions->foreign++;
    action_begin(actions, 's');
    fprintf(actions->file, " %u %u.%u T 0\n", key, process, shadow->foreign);
    fprintf(actions->file, "x %u %u.%u T %" PRId64 " 0", key, process, shadow->foreign, now);
    action_write_place(actions, server, shadow->seen.expires_ms);
    action_end(actions);
}

/* Writes that the model's key is gone, if its former owner has given it up. */
static void remove_model(struct actions *actions, unsigned server, unsigned key, bool must_be) {
    struct shadow *shadow = &actions->shadows[server][key];
    uint32_t number = shadow->model.token;
    const struct master *master = &actions->network->servers[server].master;
    if (!is_alive(&shadow->model, master_now_ms(master))) {
        return;
    }
    if (number == FOREIGN_TOKEN) {
        end_foreign(actions, server, key);
    } else if (must_be || checker_by(actions)->tokens[number].given_up >> key & 1) {
        action_begin(actions, 'd');
        action_write_token(actions, key, number);
        fprintf(actions->file, " %u", server);
        action_end(actions);
    }
}

/* Writes that a server carried out what a command asked, which it received on `link`. */
static void write_exec(struct actions *actions, struct link *link, unsigned key,
                       const struct ask *ask, int64_t expires_ms) {
    action_begin(actions, 'x');
    action_write_token(actions, key, ask->token);
    fprintf(actions->file, " %c %" PRId64 " %" PRId64, ask->kind, link->sent[link->ran_count - 1],
            ask->ttl_ms * (int64_t)MS * FEMTOS);
    action_write_place(actions, link->server->master.index, expires_ms);
    action_end(actions);
}

/* Writes how a key that a token has now came to it. */
static void write_taken(struct actions *actions, struct link *link, unsigned server, unsigned key,
                        const struct ask *ask, const struct state *found) {
    struct shadow *shadow = &actions->shadows[server][key];
    const struct master *master = &actions->network->servers[server].master;
    bool is_same =
        shadow->model.token == found->token && is_alive(&shadow->model, master_now_ms(master));
    /* What a command asks lasts for a whole TTL; what is passed on, for a reservation. */
    bool is_asked = ask != NULL && found->expires_ms >= master_now_ms(master) + ask->ttl_ms;
    if (!is_same) {
        remove_model(actions, server, key, false);
    }
    if (is_asked) {
        write_exec(actions, link, key, ask, found->expires_ms);
        shadow->model = *found;
    } else if (is_same && checker_by(actions)->tokens[found->token].given_up >> key & 1 &&
               found->expires_ms < shadow->model.expires_ms) {
        return; /* left for a while, for others to wait: the model keeps it for its life */
    } else if (!is_same || found->expires_ms != shadow->model.expires_ms) {
        action_begin(actions, 'p');
        action_write_token(actions, key, found->token);
        action_write_place(actions, server, found->expires_ms);
        action_end(actions);
        shadow->model = *found;
    }
}

/*
 * Compares a key with what it was, and writes the actions in between. `asks`: those of the command
 * on `link` that ask for the key.
 */
static void compare(struct actions *actions, struct link *link, const struct master *master,
                    unsigned key, const struct ask *asks, unsigned count) {
    struct shadow *shadow = &actions->shadows[master->index][key];
    struct state found = look(actions, master, key);
    const struct ask *ask = NULL; /* that of the token that has the key now */
    for (unsigned i = 0; i < count; i++) {
        ask = asks[i].token == found.token ? &asks[i] : ask;
    }
    bool is_same = found.token == shadow->seen.token && found.expires_ms == shadow->seen.expires_ms;
    if (is_same && ask == NULL) {
        return;
    }
    bool had_it = is_alive(&shadow->seen, master_now_ms(master));
    unsigned server = master->index;
    shadow->seen = found;
    if (found.token == NO_TOKEN) {
        if (had_it) {
            remove_model(actions, server, key, true);
            shadow->model = found;
        }
    } else if (found.token == FOREIGN_TOKEN) {
        remove_model(actions, server, key, false);
        set_foreign(actions, server, key);
        shadow->model = found;
    } else {
        write_taken(actions, link, server, key, ask, &found);
    }
}

void actions_passed(struct master *master, unsigned key) {
    struct actions *actions = actions_of(master->world);
    if (actions != NULL) {
        compare(actions, NULL, master, key, NULL, 0);
    }
}

void actions_changed(struct master *master) {
    for (unsigned key = 0; key < master->world->checker->key_count; key++) {
        actions_passed(master, key);
    }
}

/* The locks of a command that ask for a key. */
struct asks {
    const struct checker *checker;
    struct ask list[KEYS_MAX][64];
    unsigned count[KEYS_MAX];
};

static void call_ran(const struct words *words, const struct form *form,
                     const struct parsed_call *call, void *arg) {
    struct asks *asks = arg;
    const struct checker *checker = asks->checker;
    struct ask ask = {.token = check_token_of(checker, call->value->text, call->value->length),
                      .kind = parsed_call_asks(form, call)};
    long long ttl_ms = 0;
    (void)words;
    if (ask.token == NO_TOKEN || ask.kind == '\0' || !word_number(call->ttl, &ttl_ms)) {
        return;
    }
    ask.ttl_ms = ttl_ms;
    for (unsigned i = 0; i < call->count; i++) {
        unsigned key = check_key_of(checker, &call->names[i]);
        if (key < checker->key_count && asks->count[key] < 64) {
            asks->list[key][asks->count[key]++] = ask;
        }
    }
}

void actions_ran(struct link *link, const struct words *words) {
    struct actions *actions = actions_of(link->network->world);
    static struct asks asks;
    if (actions == NULL || link->db != actions->plan->db) {
        return;
    }
    memset(asks.count, 0, sizeof(asks.count));
    asks.checker = checker_by(actions);
    parsed_call_each(words, call_ran, &asks);
    for (unsigned key = 0; key < checker_by(actions)->key_count; key++) {
        compare(actions, link, &link->server->master, key, asks.list[key], asks.count[key]);
    }
}

void actions_forgotten(const struct master *master, uint32_t keys) {
    struct actions *actions = actions_of(master->world);
    for (unsigned key = 0; actions != NULL && key < checker_by(actions)->key_count; key++) {
        if (keys >> key & 1) {
            action_begin(actions, 'f');
            fprintf(actions->file, " %u %u\n", key, master->index);
            struct shadow *shadow = &actions->shadows[master->index][key];
            shadow->seen = shadow->model = (struct state){NO_TOKEN, 0};
        }
    }
}
