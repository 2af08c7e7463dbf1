/* The demos. Each shows one idea, and returns whether all of its claims were true. */
#ifndef DEMOS_H
#define DEMOS_H

#include "demo_stage.h"

#include <stdbool.h>

bool demo_locks(struct stage *stage);
bool demo_fence(struct stage *stage);
bool demo_readers(struct stage *stage);
bool demo_several(struct stage *stage);
bool demo_permits(struct stage *stage);
bool demo_stay(struct stage *stage);
bool demo_replicas(struct stage *stage);
bool demo_inspect(struct stage *stage);
bool demo_waiting(struct stage *stage);
bool demo_command(struct stage *stage);

#endif
