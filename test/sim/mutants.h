/*
 * Runs the mutants: simulators whose library has a deliberate bug. Each is a separate program,
 * built from an edit in mutants/, in the folder `mutants` beside redlock-sim.
 */
#ifndef REDLOCK_SIM_MUTANTS_H
#define REDLOCK_SIM_MUTANTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs the part-th of every `parts` mutants until it is caught, in its recorded world and then with
 * the seeds 1 to `seeds` of all profiles. Runs as many mutants at once as there are cores if parts
 * is 1, otherwise one. Prints the invariants that caught them. Returns 0 when all were caught, 1
 * otherwise.
 */
int mutants_run(const char *program, uint64_t seeds, unsigned part, unsigned parts);

/* Returns whether this program has become the mutant of this name. */
bool mutants_is(const char *name);

/* Becomes the mutant of this name, with the same arguments; exits with 2 if there is none. */
_Noreturn void mutants_become(const char *program, const char *name, char **arguments);

#endif
