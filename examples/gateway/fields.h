/* The fields of a request's body: a JSON object of known fields with checked types and bounds. */
#ifndef FIELDS_H
#define FIELDS_H

#include "gateway.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the body as an object with no fields except the `names`, a list that ends with NULL; an
 * empty body is an empty object. If the body is invalid, answers so and returns NULL.
 */
json_t *fields_read(const struct exchange *exchange, const char *const *names);

/* Returns whether the request has no body; if it has one, answers. */
bool fields_none(const struct exchange *exchange);

/*
 * Read a field, or leave *value unchanged if there is none. If the field is invalid, answer so and
 * return false.
 */
bool fields_ms(const struct exchange *exchange, const json_t *body, const char *name,
               uint64_t least, uint64_t most, uint64_t *value);
bool fields_flag(const struct exchange *exchange, const json_t *body, const char *name,
                 bool *value);

/* Reads one of `texts`, a list that ends with NULL, as its index. */
bool fields_choice(const struct exchange *exchange, const json_t *body, const char *name,
                   const char *const *texts, int *index);

/* Reads an owner's name: at most OWNER_SIZE - 1 visible ASCII characters. */
bool fields_owner(const struct exchange *exchange, const json_t *body, const char *name,
                  char owner[OWNER_SIZE]);

#endif
