/* Fills in a redlock_error. */
#ifndef REDLOCK_BASE_ERROR_H
#define REDLOCK_BASE_ERROR_H

#include <redlock.h>

/*
 * Sets the status and message of `error`, unless NULL; control characters become "?". Returns
 * `status`.
 */
__attribute__((format(printf, 3, 4))) redlock_status
error_set(redlock_error *error, redlock_status status, const char *format, ...);

#endif
