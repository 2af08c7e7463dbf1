/*
 * Simulators whose library has a deliberate bug: each is a program of its own, built from a patch
 * in mutants/, beside redlock-sim in the folder `mutants`.
 */
#ifndef REDLOCK_SIM_MUTANTS_H
#define REDLOCK_SIM_MUTANTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs each mutant until it is caught, with the seeds 1 to `seeds` of all profiles, and prints
 * what caught it. 0 when all were caught, 1 otherwise.
 */
int mutants_run_all(const char *program, uint64_t seeds);

/* Whether this program has become the mutant of this name. */
bool mutants_is(const char *name);

/* Goes on as the mutant of this name, with the same arguments; ends with 2 if there is none. */
_Noreturn void mutants_become(const char *program, const char *name, char **arguments);

#endif
