#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

redlock_status error_set(redlock_error *error, redlock_status status, const char *format, ...) {
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof(error->message), format, arguments);
        va_end(arguments);
        error->status = status;
    }
    return status;
}
