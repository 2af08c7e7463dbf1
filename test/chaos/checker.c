#include "checker.h"

#include "record.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A span of a hold's time; empty when its end is before its start. */
struct span {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct hold {
    uint64_t number;
    uint64_t parent; /* the previous element in the set */
    struct span valid;
    struct span use;
    uint64_t until_ns; /* the end of validity last reported by the library */
    uint32_t key;
    bool acquired;
    bool adds;  /* the hold's element may be in the set */
    bool added; /* the element was written, according to its writer */
    bool in_set;
    bool late;     /* the element was written after the validity */
    bool met_late; /* the use overlapped with a late writer's */
};

struct holds {
    struct hold *list;
    size_t count;
    size_t capacity;
};

static struct hold *add_hold(struct holds *holds, const struct record *record) {
    if (holds->count == holds->capacity) {
        size_t capacity = holds->capacity == 0 ? 4096 : holds->capacity * 2;
        struct hold *list = realloc(holds->list, capacity * sizeof(*list));

        if (list == NULL) {
            return NULL;
        }
        holds->list = list;
        holds->capacity = capacity;
    }
    holds->list[holds->count] = (struct hold){.number = record->hold, .key = record->key};
    return &holds->list[holds->count++];
}

/* Finds or adds a record's hold. Workers of a process take turns, so the hold is among the last. */
static struct hold *hold_of(struct holds *holds, const struct record *record) {
    for (size_t i = holds->count, tries = 0; i > 0 && tries < 1024; i--, tries++) {
        if (holds->list[i - 1].number == record->hold) {
            return &holds->list[i - 1];
        }
    }
    return add_hold(holds, record);
}

/* ------------------------------------------------------------------------------ the records */

static void end_validity(struct hold *hold, uint64_t at_ns) {
    if (at_ns < hold->valid.to_ns) {
        hold->valid.to_ns = at_ns;
    }
}

static void take(struct verdict *verdict, struct hold *hold, const struct record *record) {
    size_t status = (size_t)abs(record->status) % STATUSES;

    switch (record->kind) {
    case RECORD_ACQUIRED:
        verdict->acquired++;
        hold->acquired = true;
        hold->valid = (struct span){record->at_ns, record->until_ns};
        hold->until_ns = record->until_ns;
        break;
    case RECORD_EXTENDED:
        verdict->extended[status]++;
        break;
    case RECORD_VALID:
        verdict->renewals++;
        hold->valid.to_ns = record->until_ns;
        hold->until_ns = record->until_ns;
        break;
    case RECORD_READ:
        hold->parent = record->element;
        hold->use.from_ns = record->at_ns;
        break;
    case RECORD_ADDING:
        hold->adds = true;
        hold->use.to_ns = record->at_ns;
        break;
    case RECORD_ADDED:
        hold->added = true;
        hold->use.to_ns = record->at_ns;
        hold->late = record->at_ns > hold->until_ns;
        verdict->added++;
        verdict->late_writes += hold->late;
        break;
    case RECORD_LETTING_GO:
        end_validity(hold, record->at_ns);
        break;
    case RECORD_RELEASED:
        verdict->released[status]++;
        break;
    case RECORD_LOST:
        verdict->lost[status]++;
        end_validity(hold, record->at_ns);
        break;
    default:
        break;
    }
}

static int read_log(struct verdict *verdict, struct holds *holds, const char *folder,
                    uint32_t client) {
    struct record record;
    char path[512];
    FILE *log;

    snprintf(path, sizeof(path), "%s/client-%u.log", folder, client);
    log = fopen(path, "re");
    if (log == NULL) {
        perror(path);
        return -1;
    }
    while (fread(&record, sizeof(record), 1, log) == 1) {
        struct hold *hold;

        if (record.kind == RECORD_FAILED) {
            verdict->failed[(size_t)abs(record.status) % STATUSES]++;
            continue;
        }
        hold = hold_of(holds, &record);
        if (hold == NULL || record.kind < RECORD_FAILED || record.kind > RECORD_LOST) {
            fprintf(stderr, "redlock-chaos: %s cannot be read\n", path);
            fclose(log);
            return -1;
        }
        take(verdict, hold, &record);
    }
    fclose(log);
    return 0;
}

/* ------------------------------------------------------------------------------------- overlaps */

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_number(const void *a, const void *b) {
    return compare(((const struct hold *)a)->number, ((const struct hold *)b)->number);
}

static int by_validity(const void *a, const void *b) {
    const struct hold *left = a;
    const struct hold *right = b;
    int keys = compare(left->key, right->key);

    return keys != 0 ? keys : compare(left->valid.from_ns, right->valid.from_ns);
}

static int by_use(const void *a, const void *b) {
    const struct hold *left = a;
    const struct hold *right = b;
    int keys = compare(left->key, right->key);

    return keys != 0 ? keys : compare(left->use.from_ns, right->use.from_ns);
}

static const struct span *validity_of(const struct hold *hold) {
    return &hold->valid;
}

static const struct span *use_of(const struct hold *hold) {
    return &hold->use;
}

typedef const struct span *span_of(const struct hold *hold);
typedef void found(struct verdict *verdict, struct hold *first, struct hold *second);

static void found_validity(struct verdict *verdict, struct hold *first, struct hold *second) {
    uint64_t end_ns =
        first->valid.to_ns < second->valid.to_ns ? first->valid.to_ns : second->valid.to_ns;

    if (verdict->overlaps < MAX_EXAMPLES) {
        verdict->examples[verdict->overlaps] = (struct overlap){
            .key = first->key,
            .holds = {first->number, second->number},
            .ms = (double)(end_ns - second->valid.from_ns) / 1e6,
        };
    }
    verdict->overlaps++;
}

static void found_use(struct verdict *verdict, struct hold *first, struct hold *second) {
    verdict->use_overlaps++;
    first->met_late |= second->late;
    second->met_late |= first->late;
}

/*
 * Finds the overlaps in a list sorted by key and by the start of the spans. Spans that may overlap
 * with the next one are kept in `open`: few, when all is well.
 */
static int find_overlaps(struct verdict *verdict, const struct holds *holds, span_of *of,
                         found *report) {
    struct hold **open = calloc(holds->count + 1, sizeof(*open));
    size_t open_count = 0;

    if (open == NULL) {
        return -1;
    }
    for (size_t i = 0; i < holds->count; i++) {
        struct hold *hold = &holds->list[i];
        size_t kept = 0;

        if (of(hold)->to_ns <= of(hold)->from_ns) {
            continue;
        }
        for (size_t j = 0; j < open_count; j++) {
            if (open[j]->key == hold->key && of(open[j])->to_ns > of(hold)->from_ns) {
                report(verdict, open[j], hold);
                open[kept++] = open[j];
            }
        }
        open[kept] = hold;
        open_count = kept + 1;
    }
    free(open);
    return 0;
}

/* --------------------------------------------------------------------------------- lost updates */

/* Marks the holds whose elements are in the set of a key. The list is sorted by number. */
static int walk_set(const struct holds *holds, uint32_t key, uint64_t newest) {
    while (newest != 0) {
        const struct hold wanted = {.number = newest};
        struct hold *hold = bsearch(&wanted, holds->list, holds->count, sizeof(wanted), by_number);

        if (hold == NULL || hold->key != key || !hold->adds || hold->in_set) {
            fprintf(stderr, "redlock-chaos: the set of key %u has an element of nobody's\n", key);
            return -1;
        }
        hold->in_set = true;
        newest = hold->parent;
    }
    return 0;
}

static void count_lost(struct verdict *verdict, const struct holds *holds) {
    for (size_t i = 0; i < holds->count; i++) {
        const struct hold *hold = &holds->list[i];

        if (hold->added && !hold->in_set) {
            verdict->lost_updates++;
            verdict->lost_in_time += !hold->late && !hold->met_late;
        }
    }
}

static int check(struct verdict *verdict, struct holds *holds, const struct options *options,
                 struct board *board) {
    qsort(holds->list, holds->count, sizeof(*holds->list), by_validity);
    if (find_overlaps(verdict, holds, validity_of, found_validity) != 0) {
        return -1;
    }
    qsort(holds->list, holds->count, sizeof(*holds->list), by_use);
    if (find_overlaps(verdict, holds, use_of, found_use) != 0) {
        return -1;
    }
    qsort(holds->list, holds->count, sizeof(*holds->list), by_number);
    for (uint32_t key = 0; key < options->keys; key++) {
        if (walk_set(holds, key, atomic_load(&board->newest[key])) != 0) {
            return -1;
        }
    }
    count_lost(verdict, holds);
    return 0;
}

int checker_run(struct verdict *verdict, const char *folder, const struct options *options,
                struct board *board) {
    struct holds holds = {0};
    int outcome = 0;

    *verdict = (struct verdict){0};
    for (uint32_t i = 0; i < options->clients && outcome == 0; i++) {
        outcome = read_log(verdict, &holds, folder, i);
    }
    if (outcome == 0 && holds.count > 0) {
        outcome = check(verdict, &holds, options, board);
    }
    free(holds.list);
    return outcome;
}
