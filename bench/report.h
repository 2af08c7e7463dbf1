/* Prints a result, for people or for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "contend.h"
#include "fleet.h"
#include "held.h"
#include "measure.h"
#include "mixed.h"
#include "options.h"

/*
 * Print the result of a run, with the names that README.md explains: as one JSON object on one line
 * of stdout, or as a small table. Return -1 on failure, after a message on stderr.
 */
int report_cycles(const char *kind, const struct options *options,
                  const struct measure_settings *settings, const struct measure_result *result);
int report_held(const struct options *options, const struct held_settings *settings,
                const struct held_result *result);
int report_contend(const struct options *options, const struct contend_settings *settings,
                   const struct contend_result *result);
int report_mixed(const struct options *options, const struct mixed_settings *settings,
                 const struct mixed_result *result);
int report_fleet(const struct options *options, const struct fleet_settings *settings,
                 const struct fleet_result *result);

#endif
