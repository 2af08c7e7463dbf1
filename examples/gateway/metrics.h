/* GET /metrics: the statistics of the client and of the gateway, for Prometheus. */
#ifndef METRICS_H
#define METRICS_H

struct exchange;

void metrics_serve(const struct exchange *exchange);

#endif
