#include "nemesis.h"

#include <string.h>

const struct nemesis_kind nemeses[NEMESES] = {
    [PAUSE_CLIENTS] = {"pause-clients", true, false},
    [PAUSE_MASTERS] = {"pause-masters", true, false},
    [KILL_CLIENTS] = {"kill-clients", true, false},
    [KILL_MASTERS] = {"kill-masters", true, false},
    [KILL_MASTERS_LATE] = {"kill-masters-late", true, false},
    [DELAY] = {"delay", true, false},
    [DROP] = {"drop", true, false},
    [HALF_OPEN] = {"half-open", true, true},
    [RESET] = {"reset", true, true},
    [CUT] = {"cut", true, false},
    [AMNESIA] = {"amnesia", false, false},
    [CLOCKS] = {"clocks", false, false},
};

uint32_t nemeses_by_default(bool hosts) {
    uint32_t set = 0;

    for (unsigned i = 0; i < NEMESES; i++) {
        if (nemeses[i].keeps_assumptions && !(hosts && nemeses[i].needs_proxy)) {
            set |= NEMESIS_BIT(i);
        }
    }
    return set;
}

enum nemesis nemesis_named(const char *name) {
    unsigned i = 0;

    while (i < NEMESES && strcmp(nemeses[i].name, name) != 0) {
        i++;
    }
    return (enum nemesis)i;
}
