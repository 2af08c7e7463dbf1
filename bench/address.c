#include "address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT 6379

static const char *parse_port(struct address *address) {
    char *colon = strchr(address->host, ':');
    long port = DEFAULT_PORT;

    if (colon != NULL) {
        char *end;

        *colon = '\0';
        port = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end != '\0' || port < 1 || port > 65535) {
            return "the port is not a number from 1 to 65535";
        }
    }
    address->port = (int)port;
    return NULL;
}

const char *address_parse(struct address *address, const char *uri) {
    *address = (struct address){.path = NULL};
    if (strncmp(uri, "unix:///", 8) == 0 && strchr(uri, '?') == NULL) {
        address->path = uri + 7;
        return NULL;
    }
    if (strncmp(uri, "redis://", 8) != 0 || strpbrk(uri + 8, "@/[?") != NULL) {
        return "only redis://HOST[:PORT] and unix:///PATH can be measured this way";
    }
    if (snprintf(address->host, sizeof(address->host), "%s", uri + 8) >=
        (int)sizeof(address->host)) {
        return "the host is too long";
    }
    return parse_port(address);
}
