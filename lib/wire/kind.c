#include "wire/kind.h"

#include <stddef.h>

/*
 * Top-ups are plainer than acquisitions, because the lock is held already: a permit is topped up by
 * itself, without a look at the others, and a writer leaves no intent for readers.
 */
static const struct kind kinds[] = {
    {.features = 0,
     .form = '0',
     .take = SCRIPT_NONE,
     .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_NONE,
     .renew = SCRIPT_RENEW,
     .release = SCRIPT_RELEASE,
     .leave = SCRIPT_LEAVE,
     .stay = SCRIPT_STAY},
    {.features = KIND_FENCED,
     .form = '1',
     .take = SCRIPT_TAKE,
     .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_TAKE,
     .renew = SCRIPT_RENEW_FENCED,
     .release = SCRIPT_RELEASE,
     .leave = SCRIPT_LEAVE,
     .stay = SCRIPT_STAY},
    {.features = KIND_SEVERAL,
     .form = 's',
     .take = SCRIPT_TAKE,
     .queue = SCRIPT_QUEUE_SET,
     .top_up = SCRIPT_TAKE,
     .renew = SCRIPT_RENEW,
     .release = SCRIPT_RELEASE,
     .leave = SCRIPT_LEAVE,
     .stay = SCRIPT_STAY},
    {.features = KIND_SEVERAL | KIND_FENCED,
     .form = 'f',
     .take = SCRIPT_TAKE,
     .queue = SCRIPT_QUEUE_SET,
     .top_up = SCRIPT_TAKE,
     .renew = SCRIPT_RENEW_FENCED,
     .release = SCRIPT_RELEASE,
     .leave = SCRIPT_LEAVE,
     .stay = SCRIPT_STAY},
    {.features = KIND_PERMIT,
     .form = 'p',
     .take = SCRIPT_PERMIT,
     .queue = SCRIPT_QUEUE_PERMIT,
     .top_up = SCRIPT_NONE,
     .renew = SCRIPT_RENEW,
     .release = SCRIPT_PERMIT_RELEASE,
     .leave = SCRIPT_PERMIT_RELEASE,
     .stay = SCRIPT_STAY},
    {.features = KIND_PERMIT | KIND_FENCED,
     .form = 'p',
     .take = SCRIPT_PERMIT,
     .queue = SCRIPT_QUEUE_PERMIT,
     .top_up = SCRIPT_TAKE,
     .renew = SCRIPT_RENEW_FENCED,
     .release = SCRIPT_PERMIT_RELEASE,
     .leave = SCRIPT_PERMIT_RELEASE,
     .stay = SCRIPT_STAY},
    {.features = KIND_READER,
     .form = 'r',
     .take = SCRIPT_SHARE,
     .queue = SCRIPT_SHARE_QUEUE,
     .top_up = SCRIPT_SHARE,
     .renew = SCRIPT_SHARE_RENEW,
     .release = SCRIPT_SHARE_RELEASE,
     .leave = SCRIPT_SHARE_LEAVE,
     .stay = SCRIPT_SHARE_RELEASE},
    {.features = KIND_WRITER,
     .form = 'w',
     .take = SCRIPT_WRITE,
     .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_NONE,
     .renew = SCRIPT_RENEW,
     .release = SCRIPT_RELEASE,
     .leave = SCRIPT_LEAVE,
     .stay = SCRIPT_STAY},
    {.features = KIND_WRITER | KIND_FENCED,
     .form = 'x',
     .take = SCRIPT_WRITE_FENCED,
     .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_TAKE,
     .renew = SCRIPT_RENEW_FENCED,
     .release = SCRIPT_RELEASE,
     .leave = SCRIPT_LEAVE,
     .stay = SCRIPT_STAY},
};

const struct kind *kind_of(unsigned features) {
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].features == features) {
            return &kinds[i];
        }
    }
    return NULL;
}

unsigned kind_number(const struct kind *kind) {
    return (unsigned)(kind - kinds);
}

const struct kind *kind_at(unsigned number) {
    return &kinds[number];
}
