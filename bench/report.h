/* A result, for people or for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "held.h"
#include "measure.h"

/* One JSON object on stdout, on one line. -1, after a message on stderr, when that failed. */
int report_json(const char *kind, const struct measure_settings *settings,
                const struct measure_result *result);

/* The same as a small table. */
int report_text(const char *kind, const struct measure_settings *settings,
                const struct measure_result *result);

/* Those of held locks; both have the names that README.md explains. */
int report_held_json(const struct held_settings *settings, const struct held_result *result);
int report_held_text(const struct held_settings *settings, const struct held_result *result);

#endif
