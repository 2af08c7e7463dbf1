/* Includes cmocka, and the headers that its header requires before it. */
#ifndef REDLOCK_TEST_UNIT_H
#define REDLOCK_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Milliseconds in nanoseconds, the unit of the library. */
#define MS(ms) (UINT64_C(1000000) * (uint64_t)(ms))

#endif
