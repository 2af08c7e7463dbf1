#include <redlock.h>

#define STRING_OF(x) #x
#define VERSION_OF(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *redlock_version(void) {
    return VERSION_OF(REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR, REDLOCK_VERSION_PATCH);
}

const char *redlock_strerror(redlock_status status) {
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                             \
    case REDLOCK_##name:                                                                           \
        return text;
        REDLOCK_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "not a status of libredlock";
}

const char *redlock_status_name(redlock_status status) {
    switch (status) {
#define STATUS_NAME(name, value, text)                                                             \
    case REDLOCK_##name:                                                                           \
        return "REDLOCK_" #name;
        REDLOCK_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "REDLOCK_?";
}

bool redlock_is_retryable(redlock_status status) {
    return status == REDLOCK_EHELD || status == REDLOCK_ENOQUORUM || status == REDLOCK_EEXPIRED;
}
