/* The files that the gateway serves: its page and the description of its API. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>

struct exchange;

struct file {
    const char *path;
    const char *type;
    const unsigned char *bytes;
    size_t length;
};

/* Returns the file at a path, or NULL. */
const struct file *files_find(const char *path, size_t length);

void files_serve(const struct exchange *exchange, const struct file *file);

#endif
