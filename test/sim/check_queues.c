/*
 * Checks the wait queues at the servers, and the order in which waiters are served.
 *
 * A server gives a key to the first waiter in its queue whose client listens, and leaves no key
 * free while there is such a waiter. A request keeps the ticket of its first try. It follows that a
 * request with entries at a quorum is served before every later request: a quorum of grants for the
 * latter would include a server that has an entry of the former. (Requests that do not queue take a
 * free key. A request for several keys queues for one of them, which was held, and may be overtaken
 * at the others.) Inside a client, only requests that were waiting when the client acquired the
 * lock are served out of turn.
 */
#include "actions.h"
#include "checker.h"

#include "core/options.h"
#include "lock/lock.h"
#include "wire/push.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- tickets ---- */

void check_ticket(struct checker *checker, uint32_t number, const struct word *text) {
    struct token *token = &checker->tokens[number];
    long long ticket = 0;
    word_number(text, &ticket);
    /* A request that has no reading of the servers' clocks gets a better ticket for a later try. */
    bool is_new = token->ticket != 0 && token->ticket != ticket;
    bool may_be_new = !token->is_queued && !token->is_redrawn;
    token->is_queued = true;
    token->is_redrawn |= is_new;
    if (token->ticket == 0 || may_be_new) {
        token->ticket = (int64_t)ticket;
    }
    /* Otherwise a request keeps its ticket over all tries, and so its place in the order. */
    if (ticket <= 0 || token->ticket != ticket) {
        violate(checker->world, INVARIANT_ORDER,
                "process %u has another ticket for a request that waits (token %" PRIu32 ")",
                token->process->index, number);
    }
}

uint32_t check_channel_mark(const char *name, size_t length) {
    uint32_t mark = UINT32_C(2166136261); /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        mark = (mark ^ (unsigned char)name[i]) * UINT32_C(16777619);
    }
    return mark != 0 ? mark : 1;
}

bool check_has_asked(const struct token *token, uint32_t mark) {
    bool has_asked = false;
    for (unsigned i = 0; i < CHANNELS_MAX; i++) {
        has_asked |= token->asked[i] == mark;
    }
    return has_asked;
}

void check_asks_for_entry(struct checker *checker, uint32_t number, const struct word *channel) {
    struct token *token = &checker->tokens[number];
    uint32_t mark = check_channel_mark(channel->text, channel->length);
    if (!check_has_asked(token, mark)) {
        token->asked[token->asked_count++ % CHANNELS_MAX] = mark;
    }
}

void check_channel(struct checker *checker, const struct link *link, const struct word *channel) {
    const struct heard_channel *heard;
    bool is_heard = channel->length == 0;
    LIST_FOREACH(heard, &checker->network->heard_channels[link->process->index], link) {
        is_heard |= heard->server == link->server && word_is(channel, heard->name);
    }
    /* An entry on a channel that may not work would get pushes that are never received. */
    if (!is_heard) {
        violate(checker->world, INVARIANT_ORDER,
                "process %u asks node %u for an entry before it has heard its channel",
                link->process->index, link->server->master.index);
    }
}

/* ---- queues ---- */

static const struct store_key *queue_of(const struct checker *checker, struct master *master,
                                        unsigned key) {
    const struct store_key *queue = check_beside(checker, master, key, QUEUE_SUFFIX);
    return queue != NULL && queue->type == STORE_SET ? queue : NULL;
}

const struct link *check_listener_of(const struct checker *checker, const struct master *master,
                                     const struct member *entry) {
    const char *blank = memchr(entry->name, ' ', entry->length);
    const struct link *link;
    if (blank == NULL) {
        return NULL;
    }
    size_t left = entry->length - (size_t)(blank + 1 - entry->name);
    const char *end = memchr(blank + 1, ' ', left);
    const struct word channel = {blank + 1, end != NULL ? (size_t)(end - blank - 1) : left};
    TAILQ_FOREACH(link, &checker->network->links, all_link) {
        if (link->server->master.index == master->index && link->is_accepted &&
            link->channel[0] != '\0' && word_is(&channel, link->channel)) {
            return link;
        }
    }
    return NULL;
}

/* Returns whether an entry is ahead of one with this ticket and value. */
static bool is_before(const struct member *entry, int64_t ticket, const char *value) {
    return entry->score < ticket || (entry->score == ticket && memcmp(entry->name, value, 40) < 0);
}

/* Returns the first entry in a key's queue whose client listens; NULL when there is none. */
static const struct member *first_of(const struct checker *checker, struct master *master,
                                     unsigned key) {
    const struct store_key *queue = queue_of(checker, master, key);
    const struct member *first = NULL;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        if (entry->score > 0 && (first == NULL || is_before(entry, first->score, first->name)) &&
            check_listener_of(checker, master, entry) != NULL) {
            first = entry;
        }
    }
    return first;
}

/* Returns whether an entry is that of a waiter for several keys: "... <form> <idle> <names>". */
static bool is_of_several(const struct member *entry) {
    unsigned blanks = 0;
    for (size_t i = 0; i < entry->length; i++) {
        blanks += entry->name[i] == ' ';
    }
    return blanks == 5;
}

/*
 * Returns whether the command may have passed a key on before a waiter for several keys moved there
 * from another key's queue: the command is about several keys, has passed several on, or has found
 * a waiter that does not listen.
 */
static bool passes_in_turn(const struct passes *passes) {
    return passes->is_joint || passes->has_found_deaf || passes->count > 1;
}

void check_turn(struct checker *checker, struct master *master, uint32_t number, unsigned key) {
    const struct token *token = &checker->tokens[number];
    const struct member *first = first_of(checker, master, key);
    /* A waiter for several keys may have moved to this queue after the key was passed on. */
    if (first != NULL && is_of_several(first) && passes_in_turn(&checker->passes)) {
        return;
    }
    /* Queue order: by ticket, then by value, among waiters whose client listens. */
    if (first != NULL && is_before(first, token->ticket, token->text)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u gives key %u to token %" PRIu32 ", but token %" PRIu32
                " was first in the queue",
                master->index, key, number, check_token_of(checker, first->name, 40));
    }
}

static bool is_flagged(struct master *master) {
    return master_find(master, WAITING_KEY, strlen(WAITING_KEY)) != NULL;
}

/* Returns whether the server lists a key among those with a queue. */
static bool is_listed(struct master *master, const char *name) {
    const struct store_key *listed = master_find(master, QUEUES_KEY, strlen(QUEUES_KEY));
    const struct word word = {name, strlen(name)};
    return listed != NULL && set_find(&listed->set, &word) != NULL;
}

/* Returns whether a key's queue has an entry of the token `value`. */
static bool has_entry_of(const struct checker *checker, struct master *master, unsigned key,
                         const struct word *value) {
    const struct store_key *queue = queue_of(checker, master, key);
    bool has_entry = false;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        has_entry |= entry->score > 0 && memcmp(entry->name, value->text, ENTRY_ID_LENGTH) == 0;
    }
    return has_entry;
}

void check_flag(struct checker *checker, struct master *master, const struct word *value,
                unsigned key) {
    /* Without the flag, or an unlisted queue, RELEASE skips the queue, and deletes the key. */
    bool is_seen = is_flagged(master) && is_listed(master, checker->keys[key]);
    if (has_entry_of(checker, master, key, value) && !is_seen) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u has waiters for key %u, and does not flag and list them for its releases",
                master->index, key);
    }
}

/* Returns whether the server leaves the key to anybody for a while. */
static bool is_open(const struct checker *checker, struct master *master, unsigned key) {
    const struct store_key *queue = queue_of(checker, master, key);
    bool is_found = false;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        is_found |= entry->length > 5 && memcmp(entry->name, "open ", 5) == 0;
    }
    return is_found;
}

/* Returns whether an entry, "<value> <channel> <reservation> <form> <idle>", is a reader's. */
static bool is_of_reader(const struct member *entry) {
    const char *end = entry->name + entry->length;
    const char *blank = entry->name;
    for (unsigned i = 0; i < 3 && blank != NULL; i++) {
        blank = memchr(blank, ' ', (size_t)(end - blank));
        blank += blank != NULL;
    }
    return blank != NULL && blank < end && *blank == 'r';
}

/* Returns the first member of a key's queue; NULL when there is none. */
static const struct member *head_of(const struct checker *checker, struct master *master,
                                    unsigned key) {
    const struct store_key *queue = queue_of(checker, master, key);
    const struct member *head = NULL;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        bool is_first = head == NULL || entry->score < head->score ||
                        (entry->score == head->score && memcmp(entry->name, head->name, 40) < 0);
        head = entry->score > 0 && is_first ? entry : head;
    }
    return head;
}

/* Returns whether the server leaves the key for a while to others than the first waiter. */
static bool is_left_to_others(const struct checker *checker, struct master *master, unsigned key) {
    const struct member *head = head_of(checker, master, key);
    bool has_intent = check_beside(checker, master, key, WRITER_SUFFIX) != NULL;
    return is_open(checker, master, key) || (head != NULL && is_of_reader(head) && has_intent);
}

bool check_is_awaited(const struct checker *checker, struct master *master, unsigned key) {
    return is_flagged(master) && first_of(checker, master, key) != NULL &&
           !is_open(checker, master, key);
}

/* Returns the reservation of an entry, "<value> <channel> <reservation> ...", in ns. */
static uint64_t reservation_of(const struct member *entry) {
    char text[256];
    unsigned long long ms = 0;
    snprintf(text, sizeof(text), "%.*s", (int)entry->length, entry->name);
    sscanf(text, "%*s %*s %llu", &ms);
    return ms * MS;
}

void check_asks_again(struct checker *checker, struct master *master, uint32_t number,
                      unsigned key) {
    struct silence *silence = &checker->silences[master->index][key];
    const struct member *first = first_of(checker, master, key);
    bool is_first = first != NULL && check_token_of(checker, first->name, 40) == silence->token;
    if (silence->token == number || !is_first) { /* a waiter that is first again is notified anew */
        silence->token = NO_TOKEN;
    }
}

void check_kept_out(struct checker *checker, struct master *master, unsigned key) {
    struct silence *silence = &checker->silences[master->index][key];
    const struct member *first = first_of(checker, master, key);
    uint32_t number = first != NULL ? check_token_of(checker, first->name, 40) : NO_TOKEN;
    uint64_t now = checker->world->now;
    /* A call that stops at its bound among dead waiters keeps readers out, and gets to nobody. */
    bool is_notified = first != NULL && head_of(checker, master, key) == first;
    if (number == NO_TOKEN || silence->token != number) {
        /* It may be first only since this call let others in: the next call notifies it. */
        *silence = (struct silence){.token = is_notified ? number : NO_TOKEN, .since = NEVER};
    } else if (is_notified && silence->since == NEVER) {
        silence->since = now;
    } else if (is_notified && now - silence->since > 5 * reservation_of(first) + 500 * MS &&
               !checker->server_clocks_jump) {
        violate(checker->world, INVARIANT_LIVENESS,
                "node %u keeps readers of key %u out for token %" PRIu32
                ", which has not asked for %" PRIu64 " ms",
                master->index, key, number, (now - silence->since) / MS);
    }
}

void check_let_in(struct checker *checker, struct master *master, unsigned key) {
    const char *name = checker->keys[key];
    const struct member *head = head_of(checker, master, key);
    bool is_shared = check_is_shared(master_find(master, name, strlen(name))) &&
                     check_alive(checker, master, key) > 0;
    if (is_shared && head != NULL && is_of_reader(head) && !check_is_cut_short(checker, master) &&
        !is_left_to_others(checker, master, key)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u keeps out a reader of key %u that is first in the queue (token %" PRIu32
                ")",
                master->index, key, check_token_of(checker, head->name, 40));
    }
}

void check_freed(struct checker *checker, struct master *master, uint32_t number, unsigned key) {
    const char *name = checker->keys[key];
    const struct token *token = &checker->tokens[number];
    bool had_it = !checker->server_clocks_jump && /* the key may have expired */
                  token->keeps_until[master->index][key] > checker->world->now;
    if (!had_it || master_find(master, name, strlen(name)) != NULL ||
        check_is_cut_short(checker, master)) {
        return;
    }
    const struct member *first = first_of(checker, master, key);
    bool is_seen = is_flagged(master) && is_listed(master, name); /* or evicted */
    if (first != NULL && is_seen && !is_left_to_others(checker, master, key)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u frees key %u of token %" PRIu32 ", while token %" PRIu32
                " is in the queue",
                master->index, key, number, check_token_of(checker, first->name, 40));
    }
}

/* Returns whether a key exists with a value that belongs to no client. */
static bool is_nobodys(const struct store_key *key) {
    static const char nobody[] = "0000000000000000000000000000000000000000";
    return key != NULL && key->type == STORE_STRING && key->value_length >= sizeof(nobody) - 1 &&
           memcmp(key->value, nobody, sizeof(nobody) - 1) == 0;
}

void check_announced(struct checker *checker, struct master *master, uint32_t number,
                     unsigned key) {
    const char *name = checker->keys[key];
    const struct token *token = &checker->tokens[number];
    bool had_it = !checker->server_clocks_jump && /* the key may have expired */
                  token->keeps_until[master->index][key] > checker->world->now;
    if (!had_it || !is_nobodys(master_find(master, name, strlen(name))) ||
        check_is_cut_short(checker, master)) {
        return;
    }
    const struct member *first = first_of(checker, master, key);
    uint32_t waiter = first != NULL ? check_token_of(checker, first->name, 40) : NO_TOKEN;
    if (first != NULL && is_flagged(master) && !is_open(checker, master, key) &&
        checker->passes.notified[key] != waiter) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u leaves key %u for a while, and does not notify token %" PRIu32
                ", which is first in the queue",
                master->index, key, waiter);
    }
}

void check_left(struct checker *checker, struct master *master, const struct word *value,
                const struct word *name) {
    unsigned key = check_key_of(checker, name);
    const struct store_key *queue =
        key < checker->key_count ? queue_of(checker, master, key) : NULL;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        if (entry->length > value->length && entry->name[value->length] == ' ' &&
            memcmp(entry->name, value->text, value->length) == 0) {
            violate(checker->world, INVARIANT_EXPIRY,
                    "node %u still has an entry for token %" PRIu32 ", which has left",
                    master->index, check_token_of(checker, value->text, value->length));
        }
    }
}

void check_entries(const struct checker *checker, struct master *master, unsigned key,
                   check_entry *check) {
    const struct store_key *queue = queue_of(checker, master, key);
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        const struct link *listener = check_listener_of(checker, master, entry);
        if (listener != NULL && listener->conn != NULL) {
            check(checker, master, key, entry->name, 40);
        }
    }
}

/* ---- clocks ---- */

int64_t check_drifted(const struct checker *checker, uint64_t passed) {
    return (int64_t)((double)passed * checker->drift / (1 - checker->drift));
}

int64_t check_proven_ahead(const struct checker *checker, const struct event_base *process,
                           unsigned server, uint64_t now) {
    const struct clock_bound *bound = &checker->clock_bounds[process->index][server];
    return bound->is_known ? bound->ahead + check_drifted(checker, now - bound->at) : INT64_MIN;
}

void check_beat(struct checker *checker, const struct event_base *process, unsigned server,
                uint64_t time_us, uint64_t sent_at) {
    uint64_t now = tempo_read(&process->clock, checker->world->now);
    int64_t known = check_proven_ahead(checker, process, server, now);
    int64_t ahead = (int64_t)(time_us * 1000 - sent_at) + check_drifted(checker, now - sent_at);
    checker->clock_bounds[process->index][server] = (struct clock_bound){
        .is_known = true,
        .ahead = known != INT64_MIN && known < ahead ? known : ahead,
        .at = now,
    };
}

/* ---- pushes ---- */

void check_reservation(struct checker *checker, const struct push *push) {
    uint64_t until_us = push->expires_ms * 1000;
    if (until_us > push->time_us + OPTIONS_RESERVATION_MS * 1000) {
        violate(checker->world, INVARIANT_EXPIRY,
                "a key that is passed on is kept for %" PRIu64 " us: longer than a reservation",
                until_us - push->time_us);
    }
}

/* Returns whether a command has notified a token's client that the key is the token's. */
static bool was_heard(const struct passes *passes, uint32_t token, unsigned key) {
    bool is_heard = false;
    for (unsigned i = 0; i < passes->count; i++) {
        const struct pass *pass = &passes->list[i];
        is_heard |= pass->token == token && pass->key == key && pass->heard > 0;
    }
    return is_heard;
}

void check_given(const struct checker *checker, struct master *master, uint32_t number,
                 unsigned key) {
    const char *name = checker->keys[key];
    bool had_it = !checker->server_clocks_jump && /* the key may have expired */
                  checker->tokens[number].keeps_until[master->index][key] > checker->world->now;
    const struct store_key *found = master_find(master, name, strlen(name));
    if (!had_it || found == NULL || found->type != STORE_STRING) {
        return;
    }
    uint32_t owner = check_token_of(checker, found->value, found->value_length);
    if (owner != NO_TOKEN && owner != number && !was_heard(&checker->passes, owner, key)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u gives key %u of token %" PRIu32 " to token %" PRIu32
                ", whose client is not notified",
                master->index, key, number, owner);
    }
}

void check_heard_of(struct checker *checker, struct master *master, const struct pass *pass) {
    if (!was_heard(&checker->passes, pass->token, pass->key)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u gives key %u to token %" PRIu32 ", whose client does not listen",
                master->index, pass->key, pass->token);
    }
}

/* ---- inside a client ---- */

void check_parting(struct event_base *process, const redlock_lock *lock) {
    struct checker *checker = checker_of(process->world);
    uint32_t number = check_token_of_lock(checker, lock);
    if (number == NO_TOKEN || !lock->is_parting) {
        return;
    }
    checker->tokens[number].is_over = false;
    checker->tokens[number].is_between = true;
    actions_parted(process, number);
    for (unsigned key = 0; key < KEYS_MAX; key++) {
        uint32_t *last = &checker->released_last[process->index][key];
        *last = *last == number ? NO_TOKEN : *last;
    }
}

void check_handed_over(struct event_base *process, const redlock_lock *lock, uint64_t began_at,
                       uint32_t most) {
    struct checker *checker = checker_of(process->world);
    uint32_t number = check_token_of_lock(checker, lock);
    if (number == NO_TOKEN || !checker->tokens[number].is_between) {
        return;
    }
    struct token *token = &checker->tokens[number];
    checker->handed_over++;
    if (began_at > token->acquired_at) {
        violate(checker->world, INVARIANT_ORDER,
                "process %u hands key %u over to a request that came %" PRIu64
                " us after the lock was acquired (token %" PRIu32 ")",
                process->index, token->key, (began_at - token->acquired_at) / 1000, number);
    } else if (++token->handovers > most) {
        violate(checker->world, INVARIANT_ORDER,
                "process %u has handed key %u over %u times (token %" PRIu32 ")", process->index,
                token->key, token->handovers, number);
    }
}
