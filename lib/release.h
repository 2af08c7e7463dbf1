/* Releases that no lock waits for: failed tries are undone, debts are paid. */
#ifndef REDLOCK_RELEASE_H
#define REDLOCK_RELEASE_H

#include "context.h"
#include "key.h"
#include "node.h"
#include "wire/script.h"

#include <stdint.h>

/*
 * Releases a token at `nodes`, in this turn. Where it does not get through it becomes a debt of
 * the node, until the key has expired.
 */
void release_unattended(struct context *context, const struct owed *owed, uint32_t nodes,
                        uint64_t now);

/* What releases a key that is held as this one is, and is to stay until then (0: not at all). */
enum script release_script(const struct key *key, uint64_t stay_until, uint64_t now);

/*
 * Sends a node the releases that it is owed, the oldest first, and as many as half of its free room
 * carries; what fails again is owed again. The node asks for the rest when these are answered.
 */
void release_debts(struct node *node);

#endif
