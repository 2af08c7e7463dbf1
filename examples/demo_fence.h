/* The demo of fences: a writer that is stopped past its TTL, and a store with and without a gate.
 */
#ifndef DEMO_FENCE_H
#define DEMO_FENCE_H

#include "demo_stage.h"

#include <stdbool.h>

/* Whether all that was told was so. */
bool demo_fence(struct stage *stage);

#endif
