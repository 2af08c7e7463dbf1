#include "name_settings.h"

#include <ares.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static char settings_server[64];

void name_settings_use(const char *hosts, const char *server) {
    snprintf(settings_server, sizeof(settings_server), "%s", server);
    if (setenv("CARES_HOSTS", hosts, 1) != 0) {
        abort();
    }
}

typedef void getaddrinfo_function(ares_channel channel, const char *name, const char *service,
                                  const struct ares_addrinfo_hints *hints,
                                  ares_addrinfo_callback callback, void *arg);

/* Replaces c-ares' function, and calls it with the settings. */
void ares_getaddrinfo(ares_channel channel, const char *name, const char *service,
                      const struct ares_addrinfo_hints *hints, ares_addrinfo_callback callback,
                      void *arg) {
    static getaddrinfo_function *replaced;
    struct ares_addrinfo_hints changed = *hints;
    changed.ai_flags |= ARES_AI_ENVHOSTS;
    if (replaced == NULL) {
        *(void **)&replaced = dlsym(RTLD_NEXT, "ares_getaddrinfo");
    }
    /* Without memory the lookup fails here. */
    int status = ares_set_servers_ports_csv(channel, settings_server);
    if (status != ARES_SUCCESS) {
        callback(arg, status, 0, NULL);
    } else {
        replaced(channel, name, service, &changed, callback, arg);
    }
}
