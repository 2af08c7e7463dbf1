/*
 * Checks the wait queue for the permits of a semaphore at the servers.
 *
 * A server gives a free permit to a waiter that it has notified of one, and to any other client
 * only while no listening waiter is ahead of it. It notifies a waiter when a permit is released.
 * The entries of notified waiters have a score below 0 (scripts/parts/permits.lua).
 */
#include "checker.h"

#include "wire/command.h"
#include "wire/push.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct store_key *permit_queue_of(const struct checker *checker,
                                               struct master *master) {
    char name[sizeof(checker->semaphore) + sizeof(PERMITS_SUFFIX)];
    int length = snprintf(name, sizeof(name), "%s%s", checker->semaphore, PERMITS_SUFFIX);
    const struct store_key *queue = master_find(master, name, (size_t)length);
    return queue != NULL && queue->type == STORE_SET ? queue : NULL;
}

static bool is_entry(const struct member *member) {
    return member->length > TOKEN_LENGTH;
}

static bool is_of(const struct member *member, const char *token) {
    return is_entry(member) && memcmp(member->name, token, ENTRY_ID_LENGTH) == 0;
}

void check_permit_offered(struct checker *checker, const struct master *master,
                          const struct push *push) {
    struct offer *offer = &checker->offers[checker->offer_count++ % OFFERS_MAX];
    offer->server = master->index;
    memcpy(offer->entry_id, push->token, sizeof(offer->entry_id));
}

/* Returns whether the server has notified the waiter of a permit, as far as that is remembered. */
static bool was_offered(const struct checker *checker, const struct master *master,
                        const char *token) {
    bool is_found = false;
    for (unsigned i = 0; i < OFFERS_MAX && i < checker->offer_count; i++) {
        const struct offer *offer = &checker->offers[i];
        is_found |= offer->server == master->index &&
                    memcmp(offer->entry_id, token, sizeof(offer->entry_id)) == 0;
    }
    return is_found;
}

/* Returns whether the server leaves permits to anybody for a while. */
static bool is_open(const struct store_key *queue) {
    bool is_found = false;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        is_found |= queue->set.list[i].score == 0;
    }
    return is_found;
}

/*
 * Returns the first waiter in the queue that listens and was not notified; NULL when there is none.
 */
static const struct member *first_of(const struct checker *checker, const struct master *master,
                                     const struct store_key *queue) {
    const struct member *first = NULL;
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        if (entry->score > 0 && is_entry(entry) && (first == NULL || entry->score < first->score) &&
            check_listener_of(checker, master, entry) != NULL) {
            first = entry;
        }
    }
    return first;
}

void check_permit_turn(struct checker *checker, struct master *master, uint32_t number,
                       const char *value, bool is_in_queue) {
    const struct token *token = &checker->tokens[number];
    const struct store_key *queue = permit_queue_of(checker, master);
    const struct member *first = first_of(checker, master, queue);
    /* A request without an entry is behind all waiters. */
    bool is_before = first != NULL && (!is_in_queue || first->score < token->ticket);
    if (is_before && !is_open(queue) && !is_of(first, value) &&
        !was_offered(checker, master, value)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u gives a permit to token %" PRIu32 ", while another one stands before it",
                master->index, number);
    }
}

void check_permit_freed(struct checker *checker, struct master *master, uint32_t number,
                        unsigned key) {
    const char *name = checker->keys[key];
    const struct token *token = &checker->tokens[number];
    const struct store_key *queue = permit_queue_of(checker, master);
    bool had_it = !checker->server_clocks_jump && /* the key may have expired */
                  token->keeps_until[master->index][key] > checker->world->now;
    bool is_anybody_offered = is_open(queue);
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        is_anybody_offered |= queue->set.list[i].score < 0;
    }
    if (had_it && master_find(master, name, strlen(name)) == NULL && !is_anybody_offered &&
        first_of(checker, master, queue) != NULL) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u frees the permit of token %" PRIu32 ", and notifies no waiter",
                master->index, number);
    }
}

void check_permit_left(struct checker *checker, struct master *master, const struct word *value,
                       const struct word *ticket) {
    const struct store_key *queue = permit_queue_of(checker, master);
    bool is_returned = word_is(ticket, "1");
    for (unsigned i = 0; queue != NULL && i < queue->set.count; i++) {
        const struct member *entry = &queue->set.list[i];
        /* A negative score is an offer, which must be gone; an entry may stay after a return. */
        if (is_of(entry, value->text) && (entry->score < 0 || !is_returned)) {
            violate(checker->world, INVARIANT_EXPIRY,
                    "node %u still has an entry for a waiter that has left", master->index);
        }
    }
}
