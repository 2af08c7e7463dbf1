#include "master_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool answers(struct fixture *f, size_t master) {
    return masters_pid(f->masters, master) != 0 && (f->frozen & (1u << master)) == 0;
}

size_t holders(struct fixture *f, const char *key) {
    size_t count = 0;

    for (size_t i = 0; i < masters_count(f->masters); i++) {
        if (answers(f, i)) {
            count += (size_t)masters_query_integer(f->masters, i, "EXISTS %s", key);
        }
    }
    return count;
}

struct expectation {
    struct fixture *f;
    size_t master;
    const char *name; /* the name of a key, or of a command */
    size_t count;
};

static bool is_held(void *arg) {
    const struct expectation *wanted = arg;

    return holders(wanted->f, wanted->name) == wanted->count;
}

void wait_holders(struct fixture *f, const char *key, size_t count) {
    struct expectation wanted = {.f = f, .name = key, .count = count};
    char what[128];

    snprintf(what, sizeof(what), "%s exists on exactly %zu masters", key, count);
    run_until(f, is_held, &wanted, what);
}

void wait_released(struct fixture *f, const char *key) {
    wait_holders(f, key, 0);
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        if (answers(f, i)) {
            assert_int_equal(master_number(f, i, "expired_keys"), 0);
        }
    }
}

const char *value_at(struct fixture *f, size_t master, const char *key) {
    char *value = masters_query(f->masters, master, "GET %s", key);

    if (value != NULL) {
        at_finish(f, free, value);
    }
    return value;
}

long long pttl_at(struct fixture *f, size_t master, const char *key) {
    return masters_query_integer(f->masters, master, "PTTL %s", key);
}

long long least_pttl(struct fixture *f, const char *key) {
    long long least = -1;

    for (size_t i = 0; i < masters_count(f->masters); i++) {
        long long pttl = answers(f, i) ? pttl_at(f, i, key) : -2;

        if (pttl >= 0 && (least < 0 || pttl < least)) {
            least = pttl;
        }
    }
    assert_true(least >= 0);
    return least;
}

static void expect_ok(char *answer, const char *command) {
    if (answer == NULL || answer[0] == '-') {
        fail_msg("%s: %s", command, answer == NULL ? "(nil)" : answer);
    }
    free(answer);
}

void rival_takes(struct fixture *f, size_t from, size_t to, const char *key, uint64_t ttl_ms) {
    for (size_t i = from; i < to; i++) {
        expect_ok(masters_query(f->masters, i, "SET %s " RIVAL " PX %llu", key,
                                (unsigned long long)ttl_ms),
                  "SET");
    }
}

void rival_frees(struct fixture *f, size_t from, size_t to, const char *key) {
    for (size_t i = from; i < to; i++) {
        masters_query_integer(f->masters, i, "DEL %s", key);
    }
}

void send_to(struct fixture *f, size_t from, size_t to, const char *command) {
    for (size_t i = from; i < to; i++) {
        expect_ok(masters_query(f->masters, i, command), command);
    }
}

bool info_contains(struct fixture *f, size_t master, const char *section, const char *text) {
    char *info = masters_query(f->masters, master, "INFO %s", section);
    bool contains = info != NULL && strstr(info, text) != NULL;

    free(info);
    return contains;
}

/* Returns the number after "name" in INFO's answer; 0 when the answer has none. */
static long long number_in_info(struct fixture *f, size_t master, const char *section,
                                const char *name) {
    char *info = masters_query(f->masters, master, "INFO %s", section);
    const char *found = info == NULL ? NULL : strstr(info, name);
    long long number = found == NULL ? 0 : strtoll(found + strlen(name), NULL, 10);

    free(info);
    return number;
}

size_t executed(struct fixture *f, size_t master, const char *command) {
    char name[64];

    snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    return (size_t)number_in_info(f, master, "commandstats", name);
}

static bool is_executed(void *arg) {
    const struct expectation *wanted = arg;

    return executed(wanted->f, wanted->master, wanted->name) >= wanted->count;
}

void wait_executed(struct fixture *f, size_t master, const char *command, size_t times) {
    struct expectation wanted = {f, master, command, times};
    char what[128];

    snprintf(what, sizeof(what), "master %zu has executed %zu times %s", master, times, command);
    run_until(f, is_executed, &wanted, what);
}

size_t scripts_at(struct fixture *f, size_t master) {
    return executed(f, master, "evalsha") + executed(f, master, "eval");
}

size_t script_calls(struct fixture *f) {
    size_t calls = 0;

    for (size_t i = 0; i < masters_count(f->masters); i++) {
        calls += masters_pid(f->masters, i) != 0 ? scripts_at(f, i) : 0;
    }
    return calls;
}

long long master_number(struct fixture *f, size_t master, const char *field) {
    char name[64];

    snprintf(name, sizeof(name), "%s:", field);
    return number_in_info(f, master, "all", name);
}

void freeze(struct fixture *f, size_t master) {
    masters_stop(f->masters, master);
    f->frozen |= 1u << master;
}

void thaw(struct fixture *f, size_t master) {
    masters_continue(f->masters, master);
    f->frozen &= ~(1u << master);
}

void kill_masters(struct fixture *f, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        masters_kill(f->masters, i);
    }
}

void freeze_masters(struct fixture *f, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        freeze(f, i);
    }
}

void thaw_masters(struct fixture *f, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        thaw(f, i);
    }
}
