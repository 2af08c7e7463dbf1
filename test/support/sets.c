#include "sets.h"

#include <stdlib.h>
#include <string.h>

void set_finish(struct set *set) {
    free(set->list);
    *set = (struct set){0};
}

/* FNV-1a: compared before names, because queues in tests have thousands of long ones. */
static uint32_t hash(const struct word *name) {
    uint32_t sum = UINT32_C(2166136261);
    for (size_t i = 0; i < name->length; i++) {
        sum = (sum ^ (unsigned char)name->text[i]) * UINT32_C(16777619);
    }
    return sum;
}

static struct member *find(const struct set *set, const struct word *name) {
    uint32_t wanted = hash(name);
    for (unsigned i = 0; i < set->count; i++) {
        struct member *member = &set->list[i];
        if (member->hash == wanted && member->length == name->length &&
            memcmp(member->name, name->text, name->length) == 0) {
            return member;
        }
    }
    return NULL;
}

const struct member *set_find(const struct set *set, const struct word *name) {
    return find(set, name);
}

static struct member *add(struct set *set, const struct word *name) {
    if (set->count == set->capacity) {
        set->capacity = set->capacity * 2 + 8;
        set->list = realloc(set->list, set->capacity * sizeof(*set->list));
        if (set->list == NULL) {
            abort();
        }
    }
    struct member *member = &set->list[set->count++];
    member->length = name->length < SET_NAME_MAX ? name->length : SET_NAME_MAX;
    member->hash = hash(name);
    memcpy(member->name, name->text, member->length);
    return member;
}

bool set_put(struct set *set, const struct word *name, int64_t score) {
    struct member *member = find(set, name);
    bool is_new = member == NULL;
    member = is_new ? add(set, name) : member;
    member->score = score;
    return is_new;
}

bool set_remove(struct set *set, const struct word *name) {
    struct member *member = find(set, name);
    if (member != NULL) {
        *member = set->list[--set->count];
    }
    return member != NULL;
}

unsigned set_remove_up_to(struct set *set, int64_t score) {
    unsigned kept = 0;
    unsigned before = set->count;
    for (unsigned i = 0; i < before; i++) {
        if (set->list[i].score > score) {
            set->list[kept++] = set->list[i];
        }
    }
    set->count = kept;
    return before - kept;
}

unsigned set_count_from(const struct set *set, int64_t score) {
    unsigned count = 0;
    for (unsigned i = 0; i < set->count; i++) {
        count += set->list[i].score >= score;
    }
    return count;
}

const struct member *set_last(const struct set *set) {
    const struct member *last = NULL;
    for (unsigned i = 0; i < set->count; i++) {
        const struct member *member = &set->list[i];
        last = last == NULL || member->score > last->score ? member : last;
    }
    return last;
}

/* Returns whether a member sorts before another one. */
static bool is_before(const struct member *one, const struct member *other) {
    if (one->score != other->score) { /* nearly always: names are compared for equal ones alone */
        return one->score < other->score;
    }
    size_t length = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->name, other->name, length);
    return order < 0 || (order == 0 && one->length < other->length);
}

const struct member *set_next(const struct set *set, const struct member *last) {
    const struct member *next = NULL;
    for (unsigned i = 0; i < set->count; i++) {
        const struct member *member = &set->list[i];
        bool is_after = last == NULL || is_before(last, member);
        next = is_after && (next == NULL || is_before(member, next)) ? member : next;
    }
    return next;
}
