/* The reason why a request ended as it did, in one sentence that an operator can act on. */
#ifndef REDLOCK_CORE_EXPLAIN_H
#define REDLOCK_CORE_EXPLAIN_H

#include "base/text.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct explain_subject {
    const char *what;    /* "not acquired: canceled", "released", ... */
    uint32_t nodes;      /* size of the list */
    uint32_t next_nodes; /* size of the next list; 0: there is none */
    uint32_t tries;      /* 0: not mentioned */
    uint64_t took_ms;
    bool is_open;              /* the round still waits for votes */
    uint64_t node_timeout_ms;  /* the time after which a vote became a TIMEOUT */
    const uint64_t *answer_us; /* by report: the time that the node's answers usually take; NULL */
};

/* Appends the sentence to `text`, with the nodes grouped by vote and detail. */
void explain_write(struct text *text, const struct explain_subject *subject,
                   const redlock_node_report *reports, uint32_t count);

#endif
