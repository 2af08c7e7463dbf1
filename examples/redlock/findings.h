/* Findings of the doctor about one node, or about all nodes together. */
#ifndef FINDINGS_H
#define FINDINGS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

enum finding_grade {
    FINDING_GOOD,
    FINDING_WARNING, /* it works, but should be fixed */
    FINDING_FAULT    /* the node does not count, or there is no quorum */
};

/* The node's index in findings about all nodes together. */
#define FINDING_SET REDLOCK_MAX_NODES
#define FINDINGS_MOST 1024
#define FINDING_TEXT 1024

struct finding {
    size_t node;
    enum finding_grade grade;
    const char *name;        /* short and stable, for programs: "replica" */
    char text[FINDING_TEXT]; /* a sentence for people, with advice */
};

struct findings {
    struct finding list[FINDINGS_MOST];
    size_t count;
    size_t node; /* node being checked, or FINDING_SET */
};

/*
 * Adds a finding about the node being checked, unless the same finding with the same text is there
 * already. Findings beyond FINDINGS_MOST are dropped.
 */
void findings_add(struct findings *findings, enum finding_grade grade, const char *name,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns the worst grade about a node. */
enum finding_grade findings_worst(const struct findings *findings, size_t node);

/* Print the findings about a node, or write them as an array. */
void findings_print(const struct findings *findings, size_t node, const char *title);
struct json;
void findings_json(const struct findings *findings, size_t node, struct json *json);

#endif
