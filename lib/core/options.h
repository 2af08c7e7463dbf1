/* Options and requests of the application, checked: each refusal names the field and the bound. */
#ifndef REDLOCK_CORE_OPTIONS_H
#define REDLOCK_CORE_OPTIONS_H

#include "core/lease_state.h"

#include <redlock.h>

/*
 * Copies what the application gave, from a struct of the size that it was built with, over the
 * defaults, and checks it. The URIs are checked when they are parsed.
 */
redlock_status options_read(const redlock_options *given, redlock_options *options,
                            redlock_error *error);

/* A list of nodes, but for what is in the URIs. */
redlock_status options_check_nodes(const char *const *nodes, size_t count, redlock_error *error);

/*
 * A key of so many bytes, of which *length is set when it is 0: then it is a C string. `field` is
 * what it is called in a refusal.
 */
redlock_status options_check_key(const char *field, const char *key, size_t *length,
                                 redlock_error *error);

/* The name of one of the keys of a checked request: of the only one, or of `keys`. */
const char *options_key(const redlock_request *request, size_t index, size_t *length);

/* The same for a request of a client with `options`. */
redlock_status options_read_request(const redlock_request *given, const redlock_options *options,
                                    redlock_request *request, redlock_error *error);

/*
 * Whether a TTL leaves any validity, and is within the client's bound, also with the lock-delay
 * behind it; the field is `ttl_ms`.
 */
redlock_status options_check_ttl(const redlock_options *options, uint64_t ttl_ms,
                                 uint64_t lock_delay_ms, uint64_t min_validity_ms,
                                 redlock_error *error);

/*
 * How long the WAIT behind a grant or a renewal may take at a node: its answer is to come before
 * the round is over. Nothing else on the connection is answered meanwhile.
 */
uint64_t options_wait_ms(const redlock_options *options);

/* A checked request made at `now`, as the terms of its lease. */
struct lease_terms options_terms(const redlock_options *options, const redlock_request *request,
                                 uint64_t now);

#endif
