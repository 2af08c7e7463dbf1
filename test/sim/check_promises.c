/* Records until when servers have promised keys to a process, by replies and by messages. */
#include "actions.h"
#include "check_load.h"
#include "checker.h"

#include "wire/push.h"

void check_arrived(const struct link *link, const struct message *message) {
    const struct checker *checker = checker_of(link->network->world);
    if (checker->load != NULL) {
        check_load_arrived(checker->load, link, message);
    }
}

/* Returns the instant until which a grant is good, by the process's clock: Redlock, step 3. */
static uint64_t promise(const struct checker *checker, uint64_t sent_at, int64_t left_ms) {
    double ttl = (double)left_ms * (double)MS;
    double useful = ttl - ttl * checker->drift - 2.0 * (double)MS;
    return sent_at + (useful > 0 ? (uint64_t)useful : 0);
}

static void record_promise(struct checker *checker, uint32_t token, unsigned key, unsigned server,
                           uint64_t promised) {
    uint64_t *known = &checker->tokens[token].promised[server][key];
    *known = promised > *known ? promised : *known;
}

/*
 * Records a grant, which counts once the replicas have confirmed it; a grant beyond UNCONFIRMED_MAX
 * counts at once.
 */
static void record_grant(struct checker *checker, const struct event_base *process, unsigned server,
                         const struct effect *effect, uint64_t promised) {
    struct unconfirmed *waiting = &checker->unconfirmed[process->index][server];
    if (checker->wait_replicas == 0 || waiting->count == UNCONFIRMED_MAX) {
        record_promise(checker, effect->token, effect->key, server, promised);
        return;
    }
    waiting->grants[waiting->count].token = effect->token;
    waiting->grants[waiting->count].key = effect->key;
    waiting->grants[waiting->count++].promised = promised;
}

static void replicas_said(struct checker *checker, const struct event_base *process,
                          unsigned server, int64_t confirmations) {
    struct unconfirmed *waiting = &checker->unconfirmed[process->index][server];
    /* With wait_replicas, a grant counts only if enough replicas have confirmed it. */
    for (unsigned i = 0; i < waiting->count && confirmations >= checker->wait_replicas; i++) {
        record_promise(checker, waiting->grants[i].token, waiting->grants[i].key, server,
                       waiting->grants[i].promised);
    }
    waiting->count = 0;
}

/*
 * Returns the TTL that a reply promises, in ms: the rest, or for a key of this try the TTL that was
 * set. If the server's clock has jumped back, the rest may be more.
 */
static int64_t ttl_of(const struct effect *effect, bool is_of_this_try) {
    if (effect->left_ms > effect->lasts_ms) {
        return effect->left_ms;
    }
    return is_of_this_try ? effect->lasts_ms : effect->left_ms;
}

void check_delivered(struct link *link, const struct answer *answer, uint64_t sent_at) {
    struct event_base *process = link->process;
    unsigned server = link->server->master.index;
    struct checker *checker = checker_of(process->world);
    process->work += WORK_OF_COMMAND + answer->effect_count * WORK_OF_LOCK;
    if (checker->load != NULL) {
        return;
    }
    if (answer->reply.type == REPLY_STRING && link->stopped_at == 0 &&
        reply_is_unfinished(&answer->reply)) {
        link->stopped_at = checker->world->now;
    }
    bool is_grant = answer->reply.type == REPLY_STATUS;
    struct reply_beat beat;
    if (answer->is_beat && reply_to_beat(&answer->reply, &beat)) {
        check_beat(checker, process, server, beat.time_us, sent_at);
    }
    if (answer->is_beat) { /* the handshake is over: from now on others follow */
        link->is_beating = true;
        link->beaten_at = checker->world->now;
    }
    if (answer->is_beat && answer->reply.type == REPLY_STRING) {
        check_heard(process, server, answer->at);
        checker->beat_ran[process->index][server] = answer->at;
    }
    if (answer->reply.type == REPLY_INTEGER) { /* only WAIT answers with an integer */
        replicas_said(checker, process, server, answer->reply.integer);
    }
    for (unsigned i = 0; i < answer->effect_count; i++) {
        const struct effect *effect = &answer->effects[i];
        if (effect->is_new) {
            check_granted(checker, process, server, effect, answer->at);
        }
        /*
         * A grant is the OK of SET, or a script's success for a key that the token had or asked
         * for.
         */
        if (is_grant || effect->was_kept) {
            check_role(checker, server, effect->token, answer->at);
            check_freshness(checker, process, server, effect->token, link->number);
            /*
             * A key set by the same try at the same server, under a duplicate's name, is promised
             * from then on.
             */
            bool is_of_this_try = effect->set_at >= sent_at;
            record_grant(checker, process, server, effect,
                         promise(checker, sent_at, ttl_of(effect, is_of_this_try)));
        }
    }
}

void check_pushed(struct event_base *process, unsigned server, const char *text, size_t length) {
    struct checker *checker = checker_of(process->world);
    struct push push;
    process->work += WORK_OF_COMMAND;
    if (checker->load != NULL || !push_read(text, length, &push) || push.expires_ms == 0) {
        return;
    }
    uint32_t number = check_token_of(checker, push.token, 40);
    do {
        unsigned key = check_key_of(checker, &(struct word){push.key, push.key_length});
        if (number == NO_TOKEN || key == checker->key_count) {
            return; /* recorded when it was published */
        }
        const struct pushed *pushed = &checker->tokens[number].pushed[server][key];
        const struct effect effect = {
            .token = number, .key = key, .doubtful_until = pushed->doubtful_until};
        checker->waiting.pushed++;
        actions_pushed(process, server, number, key, push.expires_ms);
        check_granted(checker, process, server, &effect, pushed->at);
        check_role(checker, server, number, pushed->at);
        check_freshness(checker, process, server, number, 0); /* a push */
        record_promise(checker, number, key, server, tempo_read(&process->clock, pushed->until));
    } while (push_next_key(&push));
}
