/* The fields of a request's body: a JSON object of known fields, each of a type and within bounds.
 */
#ifndef FIELDS_H
#define FIELDS_H

#include "gateway.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the body as an object that has none but the `names`, a list that ends with NULL; an empty
 * body is an empty object. Returns NULL after an answer that tells what is wrong.
 */
json_t *fields_read(const struct exchange *exchange, const char *const *names);

/* Returns whether the request has no body; otherwise answers. */
bool fields_none(const struct exchange *exchange);

/*
 * Take a field, or leave *value as it is where there is none. Return false after an answer that
 * tells what is wrong.
 */
bool fields_ms(const struct exchange *exchange, const json_t *body, const char *name,
               uint64_t least, uint64_t most, uint64_t *value);
bool fields_flag(const struct exchange *exchange, const json_t *body, const char *name,
                 bool *value);

/* Takes one of `texts`, a list that ends with NULL, as its index. */
bool fields_choice(const struct exchange *exchange, const json_t *body, const char *name,
                   const char *const *texts, int *index);

/* Takes a name as owners have: at most OWNER_SIZE - 1 visible ASCII characters. */
bool fields_owner(const struct exchange *exchange, const json_t *body, const char *name,
                  char owner[OWNER_SIZE]);

#endif
