/* The state of the gateway, for its page and for GET /v1/status. */
#ifndef STATUS_H
#define STATUS_H

#include <jansson.h>

struct exchange;
struct gateway;

/* Maximum number of locks, and of waiting requests, in one answer. */
#define STATUS_ROWS_MAX 50

/* Describes nodes, locks, waiting requests and latencies. Returns NULL when out of memory. */
json_t *status_json(struct gateway *gateway);

void status_serve(const struct exchange *exchange);

/* Answers whether a quorum of masters grants locks. Needs no token. */
void health_serve(const struct exchange *exchange);

#endif
