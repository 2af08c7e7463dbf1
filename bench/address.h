/* Addresses of nodes for the benchmark's own connections, with plain hiredis. */
#ifndef BENCH_ADDRESS_H
#define BENCH_ADDRESS_H

struct address {
    char host[256];
    int port;
    const char *path; /* path of a Unix socket, inside the URI; NULL: use host and port */
};

/*
 * Reads redis://HOST[:PORT] or unix:///PATH. Returns NULL on success, otherwise a sentence that
 * says why the URI cannot be used.
 */
const char *address_parse(struct address *address, const char *uri);

#endif
