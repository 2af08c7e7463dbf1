#include "files.h"

#include "answer.h"
#include "embedded.h"
#include "fields.h"
#include "gateway.h"

#include <event2/buffer.h>
#include <string.h>

static const struct file files[] = {
    {"/", "text/html; charset=utf-8", page_html, sizeof(page_html)},
    {"/page.css", "text/css; charset=utf-8", page_css, sizeof(page_css)},
    {"/page.js", "text/javascript; charset=utf-8", page_js, sizeof(page_js)},
    {"/openapi.json", "application/json", openapi_json, sizeof(openapi_json)},
};

const struct file *files_find(const char *path, size_t length) {
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strlen(files[i].path) == length && memcmp(files[i].path, path, length) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

void files_serve(const struct exchange *exchange, const struct file *file) {
    struct evbuffer *body;

    if (!fields_none(exchange)) {
        return;
    }
    body = evbuffer_new();
    if (body == NULL || evbuffer_add_reference(body, file->bytes, file->length, NULL, NULL) != 0) {
        answer_problem(exchange->connection, PROBLEM_NO_MEMORY, NULL, "Out of memory.");
    } else {
        answer_bytes(exchange->connection, file->type, body);
    }
    if (body != NULL) {
        evbuffer_free(body);
    }
}
