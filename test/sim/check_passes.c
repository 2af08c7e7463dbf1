/*
 * Records the keys that servers pass on to waiters, in the middle of the command that frees them.
 */
#include "actions.h"
#include "checker.h"

#include "wire/push.h"
#include "wire/script.h"

#include <stdlib.h>
#include <string.h>

void check_passes_clear(struct passes *passes) {
    passes->count = 0;
    passes->is_mixed = passes->is_joint = passes->has_found_deaf = false;
    passes->taker = NO_TOKEN;
    memset(passes->notified, 0xff, sizeof(passes->notified)); /* NO_TOKEN */
}

/* Records that a waiter was notified of the key's expiry. */
static void record_notified(struct checker *checker, const struct push *push, unsigned heard) {
    unsigned key = check_key_of(checker, &(struct word){push->key, push->key_length});
    if (heard > 0 && key < checker->key_count) {
        checker->passes.notified[key] = check_token_of(checker, push->token, 40);
    }
}

/* Records that the key was published as the token's. */
static void record_published(struct checker *checker, struct master *master,
                             const struct push *push, unsigned heard) {
    struct passes *passes = &checker->passes;
    uint32_t number = check_token_of(checker, push->token, 40);
    unsigned key = check_key_of(checker, &(struct word){push->key, push->key_length});
    if (number == NO_TOKEN || key == checker->key_count || passes->count == PASSES_MAX) {
        violate(checker->world, INVARIANT_TOKENS,
                "a key is passed on that is nobody's, or to nobody");
        return;
    }
    if (heard > 0) { /* otherwise the next waiter gets it */
        actions_passed(master, key);
    }
    passes->list[passes->count++] = (struct pass){number, key, heard};
}

void check_published(struct world *world, struct master *master, const struct word *text,
                     unsigned heard) {
    struct checker *checker = checker_of(world);
    struct passes *passes = &checker->passes;
    struct push push;
    if (checker->load != NULL || !push_read(text->text, text->length, &push)) {
        return;
    }
    if (push.expires_ms == 0) {
        check_permit_offered(checker, master, &push);
        record_notified(checker, &push, heard);
        return;
    }
    if (heard == 0 && passes->count >= PASSES_MAX / 2) {
        return; /* more dead waiters than are recorded */
    }
    check_reservation(checker, &push);
    do {
        record_published(checker, master, &push, heard);
    } while (push_next_key(&push));
}

void check_counted(struct world *world, const struct master *master, unsigned subscribers) {
    struct passes *passes = &checker_of(world)->passes;
    passes->has_found_deaf |= subscribers == 0;
    if (passes->counted_by != master->store.commands || passes->counted_at != master->index) {
        passes->counted_by = master->store.commands;
        passes->counted_at = master->index;
        passes->counted = 0;
    }
    if (++passes->counted > (unsigned)atoi(ENTRIES_MAX)) {
        violate(world, INVARIANT_WORK,
                "node %u handles more than " ENTRIES_MAX " entries of queues in one call",
                master->index);
    }
}

/* An entry that leaves a key to anybody is counted as well, but has no listener. */
bool check_is_cut_short(const struct checker *checker, const struct master *master) {
    const struct passes *passes = &checker->passes;
    return passes->counted_by == master->store.commands && passes->counted_at == master->index &&
           passes->counted + checker->key_count >= (unsigned)atoi(ENTRIES_MAX);
}

/* Returns whether the connection on which the token requested its entry has ended. */
static bool has_ended(const struct checker *checker, unsigned server, const struct token *token) {
    const struct link *link;
    TAILQ_FOREACH(link, &checker->network->links, all_link) {
        if (link->number == token->set_on[server]) {
            return link->conn == NULL;
        }
    }
    return true;
}

void check_record_passes(struct checker *checker, struct master *master) {
    struct passes *passes = &checker->passes;
    for (unsigned i = 0; i < passes->count; i++) {
        const struct pass *pass = &passes->list[i];
        const char *name = checker->keys[pass->key];
        struct token *token = &checker->tokens[pass->token];
        struct effect effect;
        if (check_record_effect(checker, master, &(struct word){name, strlen(name)}, pass->token,
                                has_ended(checker, master->index, token), &effect)) {
            token->pushed[master->index][pass->key] = (struct pushed){
                .at = checker->world->now,
                .until = token->keeps_until[master->index][pass->key],
                .doubtful_until = effect.doubtful_until,
            };
            if (effect.is_new && !passes->is_mixed && pass->token != passes->taker) {
                check_heard_of(checker, master, pass);
                check_turn(checker, master, pass->token, pass->key);
            }
            checker->passed++;
        }
    }
    check_passes_clear(passes);
}
