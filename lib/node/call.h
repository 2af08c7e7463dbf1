/*
 * A script's call on its way to servers, by the script's SHA-1 or with its text. The only place
 * that handles NOSCRIPT: a server lacks a script after its start and after SCRIPT FLUSH. It answers
 * NOSCRIPT, is sent the text once, and knows the script from then on.
 */
#ifndef REDLOCK_NODE_CALL_H
#define REDLOCK_NODE_CALL_H

#include "node/uplink.h"
#include "wire/reply.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

struct call {
    enum script script;
    uint32_t texted; /* mask: the indexes of the nodes that were sent the text */
};

/*
 * Returns whether the call must be sent with the script's text to the server of node `index`, and
 * counts the text as sent. Later calls on the connection rely on that, so call_not_sent must follow
 * if the call could not be sent.
 */
static inline bool call_takes_text(struct call *call, struct uplink *uplink, uint32_t index) {
    uint32_t script = UINT32_C(1) << call->script;
    bool lacks = (uplink->lacks & script) != 0;
    uplink->lacks &= ~script;
    call->texted |= (uint32_t)lacks << index;
    return lacks;
}

/* Records that a call could not be sent to a server: if it carried the text, that is due again. */
static inline void call_not_sent(const struct call *call, struct uplink *uplink, uint32_t index) {
    if (call->texted >> index & 1) {
        uplink->lacks |= UINT32_C(1) << call->script;
    }
}

/*
 * Returns whether the call must be sent once more after a reply (may be NULL): the server lacks the
 * script, and this call did not carry the text. Then the text is due: call_takes_text returns true.
 */
static inline bool call_is_asked_again(const struct call *call, struct uplink *uplink,
                                       uint32_t index, const struct reply *reply) {
    if (reply == NULL || !reply_lacks_script(reply) || (call->texted >> index & 1)) {
        return false;
    }
    uplink->lacks |= UINT32_C(1) << call->script;
    return true;
}

#endif
