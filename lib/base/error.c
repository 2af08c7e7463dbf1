#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

redlock_status error_set(redlock_error *error, redlock_status status, const char *format, ...) {
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof(error->message), format, arguments);
        va_end(arguments);
        for (char *p = error->message; *p != '\0'; p++) { /* of values that the sentence repeats */
            unsigned char byte = (unsigned char)*p;
            *p = byte < ' ' || byte == 0x7f ? '?' : *p;
        }
        error->status = status;
    }
    return status;
}
