/* Replaces probes.c in builds without <sys/sdt.h>: there is no tracing. */
#include "io/probes.h"

void probes_init(struct probes *probes, const redlock_client *client) {
    *probes = (struct probes){.client = client};
}

bool probes_look(struct probes *probes) {
    (void)probes;
    return false;
}
