/* The smallest program that uses the installed library: it links, and runs, the right one. */
#include <redlock.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char version[32];
    redlock_error error = {REDLOCK_OK, ""};
    redlock_client *client = NULL;
    snprintf(version, sizeof(version), "%d.%d.%d", REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR,
             REDLOCK_VERSION_PATCH);
    if (strcmp(redlock_version(), version) != 0) {
        fprintf(stderr, "the header is of %s, the library of %s\n", version, redlock_version());
        return 1;
    }
    /* Refused, but it pulls in all of the library at link time. */
    if (redlock_client_create(NULL, NULL, &client, &error) != REDLOCK_EINVAL || client != NULL) {
        fprintf(stderr, "a client without a base: %s\n", error.message);
        return 1;
    }
    return 0;
}
