/*
 * The releases that open a queue to all clients: the token of a release decides, of 128 one. A test
 * that needs some of them would need hundreds of releases, which take minutes on a busy machine.
 * The supply of tokens of this module replaces libsodium's.
 */
#ifndef REDLOCK_TEST_OPENINGS_H
#define REDLOCK_TEST_OPENINGS_H

#include "harness.h"

/* Makes 1 release in 4 open its queue, until the end of the test, for clients created from now. */
void open_often(struct fixture *f);

#endif
