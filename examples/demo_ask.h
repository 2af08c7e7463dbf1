/* Asks a fenced_store something, as a client of no lock. */
#ifndef DEMO_ASK_H
#define DEMO_ASK_H

#include "demo_stage.h"

#include <event2/http.h>
#include <stdint.h>

struct question {
    uint16_t port; /* the store's */
    enum evhttp_cmd_type verb;
    const char *object;
    const char *fence; /* NULL: none */
    const char *value; /* to be written; NULL: none */

    int code;       /* of the answer; 0: there was none */
    char text[128]; /* its body, without the newline at its end */
};

/* Runs the loop until it is answered. The code. */
int ask(struct stage *stage, struct question *question);

#endif
