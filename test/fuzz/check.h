/* A property that does not hold ends the process: libFuzzer keeps the input, a test fails. */
#ifndef REDLOCK_FUZZ_CHECK_H
#define REDLOCK_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
