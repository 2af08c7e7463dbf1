/*
 * Options and requests whose fields are set by name: for bindings to other languages, which need
 * not know the layout of the structs then, and for files of settings. Part of the API of redlock.h,
 * but not included by it.
 *
 *     redlock_options *options = redlock_options_new();
 *     redlock_options_set(options, "nodes", "redis://10.0.0.1", &error);
 *     redlock_options_set(options, "nodes", "redis://10.0.0.2", &error);
 *     redlock_options_set(options, "nodes", "redis://10.0.0.3", &error);
 *     redlock_options_set(options, "max_ttl_ms", "60000", &error);
 *     redlock_client_create(base, options, &client, &error);
 *     redlock_options_free(options);
 *
 * The names are those of the fields of redlock_options and redlock_request, which say what they
 * mean. A value is a text:
 *
 *   numbers       decimal digits; of 64 bits also "forever", REDLOCK_FOREVER; `drift` also with a
 *                 point, in each locale
 *   flags         "true" or "false"
 *   enumerations  the end of the enumerator's name, in small letters: `guards` "lenient"
 *   lists         each call adds one entry: `nodes`, and `keys` of a request. Their counts and
 *                 lengths have no names
 *   NULL          the default again; of a list, no entries
 *
 * Ranges are checked when the struct is used. Texts are copied; the copies belong to the struct.
 *
 * These structs are the library's, so only those of redlock_options_new and redlock_request_new may
 * be passed to the other functions here. Fields may also be read and assigned as usual, except
 * lists. A struct belongs to one thread at a time, and to no client.
 */
#ifndef REDLOCK_SETTINGS_H
#define REDLOCK_SETTINGS_H

#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns options with the defaults, in memory of malloc; NULL: there is none. */
REDLOCK_EXPORT redlock_options *redlock_options_new(void);

/* Returns a request with the defaults, likewise. */
REDLOCK_EXPORT redlock_request *redlock_request_new(void);

/* Frees options and their texts. NULL is allowed. */
REDLOCK_EXPORT void redlock_options_free(redlock_options *options);

/* Frees a request and its texts. NULL is allowed. */
REDLOCK_EXPORT void redlock_request_free(redlock_request *request);

/*
 * Sets a field of options. Returns REDLOCK_OK; or, with nothing changed, REDLOCK_EINVAL (there is
 * no such field, or it has no such value) or REDLOCK_ENOMEM, and a sentence in `error`, unless that
 * is NULL, which names the field.
 */
REDLOCK_EXPORT redlock_status redlock_options_set(redlock_options *options, const char *field,
                                                  const char *value, redlock_error *error);

/*
 * Sets a field of a request, likewise. A key may contain any bytes: `length` is that of the value,
 * 0 for a C string.
 */
REDLOCK_EXPORT redlock_status redlock_request_set(redlock_request *request, const char *field,
                                                  const char *value, size_t length,
                                                  redlock_error *error);

/* Sets the log hook, as redlock_options.log; NULL: none. */
REDLOCK_EXPORT void redlock_options_set_log(redlock_options *options, redlock_log_cb *log,
                                            void *arg);

/* Sets the trace hook, as redlock_options.trace; NULL: none. */
REDLOCK_EXPORT void redlock_options_set_trace(redlock_options *options, redlock_trace_cb *trace,
                                              void *arg);

/* Sets the callback for a loss, as redlock_request.on_lost; NULL: none. */
REDLOCK_EXPORT void redlock_request_set_on_lost(redlock_request *request, redlock_cb *on_lost,
                                                void *arg);

#ifdef __cplusplus
}
#endif

#endif
