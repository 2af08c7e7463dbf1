/*
 * Scenarios: an application uses locks while a service fails. A scenario starts with masters that
 * are up and well-behaved, and may leave its clients open: they are closed after it. Without a
 * failure a scenario asserts the outcome that its name states; after a failure, every outcome that
 * the API promises is legal.
 */
#ifndef REDLOCK_TORTURE_SCENARIOS_H
#define REDLOCK_TORTURE_SCENARIOS_H

#include "app.h"

/* The number of clients of a run, which are prepared for the scenario, but not created yet. */
#define SCENARIO_APPS 2

struct scenario {
    const char *name;
    enum address address;
    void (*play)(struct app *apps);
};

#define AT(where, function)                                                                        \
    { #function, ADDRESS_##where, function }
#define ON_SOCKETS(function) AT(SOCKET, function)

/* Scenarios of one file. */
struct theme {
    const struct scenario *scenarios;
    unsigned count;
};

#define THEME(list)                                                                                \
    { list, sizeof(list) / sizeof((list)[0]) }

extern const struct theme theme_connecting, theme_acquiring, theme_holding, theme_closing,
    theme_inside, theme_moving, theme_fencing, theme_permits, theme_sharing, theme_guarded,
    theme_waiting;

/* Returns a scenario by number; NULL beyond the last one. */
const struct scenario *scenario_at(unsigned index);

#endif
