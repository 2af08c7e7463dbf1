/* An inspection of a key, as text and as JSON. */
#ifndef VIEW_H
#define VIEW_H

#include "json.h"

#include <redlock.h>
#include <stddef.h>

/* Prints the quorum's result as one line. */
void view_line(const char *key, size_t length, redlock_status status, const redlock_view *view);

/* Prints a table of the nodes' answers. */
void view_nodes(const redlock_view *view);

/* Writes everything as an object, in an array or at the top level. */
void view_json(struct json *json, const char *key, size_t length, redlock_status status,
               const redlock_view *view);

#endif
