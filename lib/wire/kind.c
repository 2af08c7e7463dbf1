#include "wire/kind.h"

#include <stddef.h>

/*
 * Top-ups are plainer than acquisitions, because the lock is held already: a permit is topped up by
 * itself, without a look at the others, and a writer leaves no intent for readers.
 */
#define OF_A_KEY .release = SCRIPT_RELEASE, .leave = SCRIPT_LEAVE, .stay = SCRIPT_STAY
#define OF_A_PERMIT                                                                                \
    .release = SCRIPT_PERMIT_RELEASE, .leave = SCRIPT_PERMIT_RELEASE, .stay = SCRIPT_STAY
#define OF_A_SHARE                                                                                 \
    .release = SCRIPT_SHARE_RELEASE, .leave = SCRIPT_SHARE_LEAVE, .stay = SCRIPT_SHARE_RELEASE

/* clang-format off */
static const struct kind kinds[] = {
    {0, '0', .take = SCRIPT_NONE, .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_NONE, .renew = SCRIPT_RENEW, OF_A_KEY},
    {KIND_FENCED, 'n', .take = SCRIPT_TAKE, .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_TAKE, .renew = SCRIPT_RENEW_FENCED, OF_A_KEY},
    {KIND_SEVERAL, 's', .take = SCRIPT_TAKE, .queue = SCRIPT_QUEUE_SET,
     .top_up = SCRIPT_TAKE, .renew = SCRIPT_RENEW, OF_A_KEY},
    {KIND_SEVERAL | KIND_FENCED, 'g', .take = SCRIPT_TAKE, .queue = SCRIPT_QUEUE_SET,
     .top_up = SCRIPT_TAKE, .renew = SCRIPT_RENEW_FENCED, OF_A_KEY},
    {KIND_PERMIT, 'p', .take = SCRIPT_PERMIT, .queue = SCRIPT_QUEUE_PERMIT,
     .top_up = SCRIPT_NONE, .renew = SCRIPT_RENEW, OF_A_PERMIT},
    {KIND_PERMIT | KIND_FENCED, 'p', .take = SCRIPT_PERMIT, .queue = SCRIPT_QUEUE_PERMIT,
     .top_up = SCRIPT_TAKE, .renew = SCRIPT_RENEW_FENCED, OF_A_PERMIT},
    {KIND_READER, 'r', .take = SCRIPT_SHARE, .queue = SCRIPT_SHARE_QUEUE,
     .top_up = SCRIPT_SHARE, .renew = SCRIPT_SHARE_RENEW, OF_A_SHARE},
    {KIND_WRITER, 'w', .take = SCRIPT_WRITE, .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_NONE, .renew = SCRIPT_RENEW, OF_A_KEY},
    {KIND_WRITER | KIND_FENCED, 'v', .take = SCRIPT_WRITE_FENCED, .queue = SCRIPT_QUEUE,
     .top_up = SCRIPT_TAKE, .renew = SCRIPT_RENEW_FENCED, OF_A_KEY},
};
/* clang-format on */

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
