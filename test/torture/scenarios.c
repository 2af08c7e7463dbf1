#include "scenarios.h"

#include <stddef.h>

const struct scenario *scenario_at(unsigned index) {
    static const struct theme *const themes[] = {
        &theme_connecting, &theme_acquiring, &theme_holding, &theme_closing,
        &theme_inside,     &theme_moving,    &theme_fencing, &theme_permits,
        &theme_sharing,    &theme_guarded,   &theme_waiting};
    for (unsigned i = 0; i < sizeof(themes) / sizeof(themes[0]); i++) {
        if (index < themes[i]->count) {
            return &themes[i]->scenarios[index];
        }
        index -= themes[i]->count;
    }
    return NULL;
}
