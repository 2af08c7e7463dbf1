/* Checks the application's options and requests. Each refusal names the field and the bound. */
#ifndef REDLOCK_CORE_OPTIONS_H
#define REDLOCK_CORE_OPTIONS_H

#include "core/lease_state.h"

#include <redlock.h>

/*
 * Copies the application's options, a struct of the size that the application was built with, over
 * the defaults, and checks them. The URIs are checked when they are parsed.
 */
redlock_status options_read(const redlock_options *given, redlock_options *options,
                            redlock_error *error);

/* Checks a list of nodes, but not the URIs in it. */
redlock_status options_check_nodes(const char *const *nodes, size_t count, redlock_error *error);

/*
 * Checks a key of *length bytes. If *length is 0, the key is a C string, and its length is stored
 * there. `field` names the key in a refusal.
 */
redlock_status options_check_key(const char *field, const char *key, size_t *length,
                                 redlock_error *error);

/* Returns the name of a key of a checked request: its only key, or one of `keys`. */
const char *options_key(const redlock_request *request, size_t index, size_t *length);

/* Reads and checks a request like options_read, for a client with `options`. */
redlock_status options_read_request(const redlock_request *given, const redlock_options *options,
                                    redlock_request *request, redlock_error *error);

/*
 * Reads a request with one key like options_read_request, but checks only the key: everything else
 * has been checked before.
 */
redlock_status options_read_key(const redlock_request *given, redlock_request *request,
                                redlock_error *error);

/*
 * Checks that a TTL leaves more validity than the requested minimum, and that TTL and lock delay
 * together are within the client's bound. A refusal names the field `ttl_ms`.
 */
redlock_status options_check_ttl(const redlock_options *options, uint64_t ttl_ms,
                                 uint64_t lock_delay_ms, uint64_t min_validity_ms,
                                 redlock_error *error);

/*
 * Returns the time in milliseconds that the WAIT after a grant or a renewal may take at a node, so
 * that its answer arrives before the round is over. The connection answers nothing else meanwhile.
 */
uint64_t options_wait_ms(const redlock_options *options);

/* The least adaptive stall timeout. */
#define OPTIONS_STALL_MIN (1000 * NANOS_PER_MS)

/* Returns the stall timeout of what has no measured answers: lookups, and the first try. */
uint64_t options_stall(const redlock_options *options);

/* Returns the age up to which an answered heartbeat counts that was sent every `period`. */
uint64_t options_max_age(const redlock_options *options, uint64_t period);

/*
 * The longest reservation. If a waiter that was given the key hangs, others cannot have the key for
 * this long. A reservation must be longer than a push and its confirmation take.
 */
#define OPTIONS_RESERVATION_MS 1000

/* The smallest TTL of a lock that is reported on pushes alone: the renewal has 1/4 of it. */
#define OPTIONS_PUSH_TTL_MS 100

/* Returns the terms of a checked request's lease; the caller sets the client's own. */
struct lease_terms options_terms(const redlock_options *options, const redlock_request *request);

#endif
