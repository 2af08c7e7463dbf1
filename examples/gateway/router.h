/* Routes a request to the function that serves it. */
#ifndef ROUTER_H
#define ROUTER_H

struct evhttp_request;

/* Serves a request that has arrived: a callback of evhttp, whose argument is the gateway. */
void router_serve(struct evhttp_request *request, void *gateway);

#endif
