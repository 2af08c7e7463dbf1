/* Refuses combinations of options that make no sense. */
#ifndef BENCH_OPTIONS_CHECK_H
#define BENCH_OPTIONS_CHECK_H

#include "options.h"

/* Exits after a message on stderr. */
_Noreturn void options_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Checks, before the defaults are set, that each given option has an effect. */
void options_check_uses(const struct options *options);

/* Checks the combination of values, including defaults. */
void options_check_values(const struct options *options);

#endif
