/*
 * A script's call on its way to servers, by the script's SHA-1 or with its text, and what follows
 * a NOSCRIPT: the one place that knows. A server lacks a script after its start and after SCRIPT
 * FLUSH; it answers NOSCRIPT, is sent the text once, and knows the script from then on.
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
    uint32_t texted; /* mask, by the slots of nodes: those that were sent the text */
};

/*
 * Returns whether the call must be sent with the script's text to this server, whose slot is
 * `slot`. Later calls on the connection may rely on the text, so that call_not_sent must follow
 * where it could not be sent.
 */
static inline bool call_takes_text(struct call *call, struct uplink *uplink, uint32_t slot) {
    uint32_t script = UINT32_C(1) << call->script;
    bool lacks = (uplink->lacks & script) != 0;
    uplink->lacks &= ~script;
    call->texted |= (uint32_t)lacks << slot;
    return lacks;
}

/* Notes that the call could not be sent to a server: if it had the text, the text is due again. */
static inline void call_not_sent(const struct call *call, struct uplink *uplink, uint32_t slot) {
    if (call->texted >> slot & 1) {
        uplink->lacks |= UINT32_C(1) << call->script;
    }
}

/*
 * Returns whether a reply asks for the call once more: the server lacks the script, and was not
 * sent its text by this call. call_takes_text is true then.
 */
static inline bool call_is_asked_again(const struct call *call, struct uplink *uplink,
                                       uint32_t slot, const struct reply *reply) {
    if (reply == NULL || !reply_lacks_script(reply) || (call->texted >> slot & 1)) {
        return false;
    }
    uplink->lacks |= UINT32_C(1) << call->script;
    return true;
}

#endif
