/* The state of the gateway: for its page, and as GET /v1/status. */
#ifndef STATUS_H
#define STATUS_H

#include <jansson.h>

struct exchange;
struct gateway;

/* Locks, and waiting requests, that one answer tells at the most. */
#define STATUS_ROWS_MAX 50

/* Describes nodes, locks, waiting requests and latencies. Returns NULL without memory. */
json_t *status_json(struct gateway *gateway);

void status_serve(const struct exchange *exchange);

/* Answers whether a quorum of masters grants locks; who asks needs no token. */
void health_serve(const struct exchange *exchange);

#endif
