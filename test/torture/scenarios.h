/*
 * Scenarios: the work of an application with its locks while a service fails. A scenario begins
 * with masters that are up and well, and may leave its clients open: they are closed after it.
 * Without a failure a scenario asserts the outcome that its name says; after a failure, each
 * outcome that the API promises is right.
 */
#ifndef REDLOCK_TORTURE_SCENARIOS_H
#define REDLOCK_TORTURE_SCENARIOS_H

#include "app.h"

/* The number of clients of a run, which are prepared for the scenario, and not made yet. */
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
