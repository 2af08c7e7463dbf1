/* Sends requests to a fenced_store, as a client without a lock. */
#ifndef DEMO_ASK_H
#define DEMO_ASK_H

#include "demo_stage.h"

#include <event2/http.h>
#include <stdint.h>

struct question {
    uint16_t port; /* port of the store */
    enum evhttp_cmd_type verb;
    const char *object;
    const char *fence; /* NULL: none */
    const char *value; /* value to write; NULL: none */

    int code;       /* status code of the answer; 0: no answer */
    char text[128]; /* body of the answer, without its final newline */
};

/* Sends the question, and runs the loop until the answer is there. Returns `code`. */
int ask(struct stage *stage, struct question *question);

#endif
