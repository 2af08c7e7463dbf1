/* Addresses of nodes that the benchmark itself connects to, by plain hiredis. */
#ifndef BENCH_ADDRESS_H
#define BENCH_ADDRESS_H

struct address {
    char host[256];
    int port;
    const char *path; /* of a Unix socket, within the URI; NULL: host and port count */
};

/*
 * Reads redis://HOST[:PORT] or unix:///PATH. Returns NULL; or a sentence that says why the URI
 * cannot be used.
 */
const char *address_parse(struct address *address, const char *uri);

#endif
