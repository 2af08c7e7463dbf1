#include "wire/kind.h"

#include <stddef.h>

/* A top-up of a permit takes just that one; a writer that is topped up meets no readers. */
static const struct kind kinds[] = {
    {0, SCRIPT_NONE, SCRIPT_NONE, SCRIPT_RENEW, SCRIPT_RELEASE, SCRIPT_STAY},
    {KIND_FENCED, SCRIPT_TAKE, SCRIPT_TAKE, SCRIPT_KEEP, SCRIPT_RELEASE, SCRIPT_STAY},
    {KIND_SEVERAL, SCRIPT_TAKE, SCRIPT_TAKE, SCRIPT_RENEW, SCRIPT_RELEASE, SCRIPT_STAY},
    {KIND_SEVERAL | KIND_FENCED, SCRIPT_TAKE, SCRIPT_TAKE, SCRIPT_KEEP, SCRIPT_RELEASE,
     SCRIPT_STAY},
    {KIND_PERMIT, SCRIPT_PERMIT, SCRIPT_NONE, SCRIPT_RENEW, SCRIPT_RELEASE, SCRIPT_STAY},
    {KIND_PERMIT | KIND_FENCED, SCRIPT_PERMIT, SCRIPT_TAKE, SCRIPT_KEEP, SCRIPT_RELEASE,
     SCRIPT_STAY},
    {KIND_READER, SCRIPT_SHARE, SCRIPT_SHARE, SCRIPT_SHARE_KEEP, SCRIPT_SHARE_END,
     SCRIPT_SHARE_END},
    {KIND_WRITER, SCRIPT_WRITE, SCRIPT_NONE, SCRIPT_RENEW, SCRIPT_RELEASE, SCRIPT_STAY},
    {KIND_WRITER | KIND_FENCED, SCRIPT_WRITE_FENCED, SCRIPT_TAKE, SCRIPT_KEEP, SCRIPT_RELEASE,
     SCRIPT_STAY},
};

const struct kind *kind_of(unsigned features) {
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].features == features) {
            return &kinds[i];
        }
    }
    return NULL;
}
