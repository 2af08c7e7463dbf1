/*
 * A script's call on its way to servers, by the script's SHA-1 or with its text. The only place
 * that handles NOSCRIPT: a server lacks a script after its start and after SCRIPT FLUSH. It answers
 * NOSCRIPT, is sent the text once, and knows the script from then on.
 */
#ifndef REDLOCK_NODE_EVAL_H
#define REDLOCK_NODE_EVAL_H

#include "node/uplink.h"
#include "wire/reply.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

struct eval {
    enum script script;
    uint32_t texted; /* mask: the indexes of the nodes that were sent the text */
};

/*
 * Returns whether the call must be sent with the script's text to the server of node `index`, and
 * counts the text as sent. Later calls on the connection rely on that, so eval_not_sent must follow
 * if the call could not be sent.
 */
static inline bool eval_takes_text(struct eval *eval, struct uplink *uplink, uint32_t index) {
    uint32_t script = UINT32_C(1) << eval->script;
    bool lacks = (uplink->lacks & script) != 0;
    uplink->context->scripts_called |= script;
    uplink->lacks &= ~script;
    eval->texted |= (uint32_t)lacks << index;
    return lacks;
}

/* Records that a call could not be sent to a server: if it carried the text, that is due again. */
static inline void eval_not_sent(const struct eval *eval, struct uplink *uplink, uint32_t index) {
    if (eval->texted >> index & 1) {
        uplink->lacks |= UINT32_C(1) << eval->script;
    }
}

/*
 * Returns whether the call must be sent once more after a reply (may be NULL): the server lacks the
 * script, and this call did not carry the text. Then the text is due: eval_takes_text returns true.
 */
static inline bool eval_is_asked_again(const struct eval *eval, struct uplink *uplink,
                                       uint32_t index, const struct reply *reply) {
    if (reply == NULL || !reply_lacks_script(reply) || (eval->texted >> index & 1)) {
        return false;
    }
    uplink->lacks |= UINT32_C(1) << eval->script;
    return true;
}

#endif
