/* Prints a result, for people or for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "contend.h"
#include "held.h"
#include "measure.h"
#include "options.h"

/*
 * Prints the result of cycles as one JSON object on one line of stdout. Returns -1 on failure,
 * after a message on stderr.
 */
int report_cycles_json(const char *kind, const struct options *options,
                       const struct measure_settings *settings,
                       const struct measure_result *result);

/* Prints the result as a small table; otherwise like report_cycles_json. */
int report_cycles_text(const char *kind, const struct options *options,
                       const struct measure_settings *settings,
                       const struct measure_result *result);

/* Print the result of a run with held locks, with the names that README.md explains. */
int report_held_json(const struct options *options, const struct held_settings *settings,
                     const struct held_result *result);
int report_held_text(const struct options *options, const struct held_settings *settings,
                     const struct held_result *result);

/* Print the result of a run with contenders, with the names that README.md explains. */
int report_contend_json(const struct options *options, const struct contend_settings *settings,
                        const struct contend_result *result);
int report_contend_text(const struct options *options, const struct contend_settings *settings,
                        const struct contend_result *result);

#endif
