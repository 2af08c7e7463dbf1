/* The names of the values of events' fields, for people. */
#ifndef REDLOCK_CORE_EVENT_NAMES_H
#define REDLOCK_CORE_EVENT_NAMES_H

#include "core/round.h"

#include <redlock.h>

const char *event_round_name(enum round_kind round);
const char *event_verdict_name(enum round_verdict verdict);
const char *event_vote_name(redlock_vote vote);

#endif
