/* Tests tokens: their form, and that no token is drawn twice, not even by a child. */
#include "unit.h"

#include "io/random.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKENS 1000
#define SIZE (TOKEN_LENGTH + 1)

static void draw_one(struct random *random, char token[SIZE]) {
    unsigned char packed[TOKEN_BYTES];
    random_token(random, packed);
    token_unpack(token, packed);
}

static int compare(const void *one, const void *other) {
    return memcmp(one, other, SIZE);
}

static void assert_all_differ(char (*tokens)[SIZE], size_t count) {
    qsort(tokens, count, SIZE, compare);
    for (size_t i = 1; i < count; i++) {
        assert_memory_not_equal(tokens[i - 1], tokens[i], SIZE);
    }
}

static void draw(struct random *random, char (*tokens)[SIZE], size_t count) {
    for (size_t i = 0; i < count; i++) {
        draw_one(random, tokens[i]);
    }
}

static void tokens_are_forty_digits_and_differ(void **state) {
    struct random random;
    static char tokens[TOKENS][SIZE];
    (void)state;

    assert_true(random_init());
    random_open(&random);
    draw(&random, tokens, TOKENS);
    random_close(&random);
    for (size_t i = 0; i < TOKENS; i++) {
        assert_int_equal(strspn(tokens[i], "0123456789abcdef"), SIZE - 1);
    }
    assert_all_differ(tokens, TOKENS);
}

/* Of 40,000 digits each of the 16 occurs about 2,500 times: a digit that never occurs is a bug. */
static void all_digits_come_about_as_often(void **state) {
    static const char digits[] = "0123456789abcdef";
    unsigned counts[16] = {0};
    struct random random;
    char token[SIZE];
    (void)state;

    assert_true(random_init());
    random_open(&random);
    for (unsigned i = 0; i < TOKENS; i++) {
        draw_one(&random, token);
        for (unsigned k = 0; k < SIZE - 1; k++) {
            counts[strchr(digits, token[k]) - digits]++;
        }
    }
    random_close(&random);
    for (unsigned i = 0; i < COUNT_OF(counts); i++) {
        assert_int_in_range(counts[i], 2000, 3000); /* 10 standard deviations */
    }
}

static void tokens_come_without_a_store_too(void **state) {
    struct random random = {NULL};
    static char tokens[TOKENS][SIZE];
    (void)state;

    assert_true(random_init());
    draw(&random, tokens, TOKENS);
    assert_all_differ(tokens, TOKENS);
    random_close(&random);
}

/* Writes a child's tokens into the pipe. */
static void be_child(struct random *random, int to) {
    char tokens[TOKENS][SIZE];
    draw(random, tokens, TOKENS);
    _exit(write(to, tokens, sizeof(tokens)) == sizeof(tokens) ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void read_all(int from, char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = read(from, bytes, length);
        assert_true(count > 0);
        bytes += count;
        length -= (size_t)count;
    }
}

static void a_child_makes_no_token_of_its_parent(void **state) {
    struct random random;
    static char tokens[2 * TOKENS][SIZE];
    int ends[2];
    int result;
    (void)state;

    assert_true(random_init());
    random_open(&random);
    draw(&random, tokens, 1); /* so that the store is full but for one */
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        be_child(&random, ends[1]);
    }
    draw(&random, tokens, TOKENS);
    read_all(ends[0], tokens[TOKENS], sizeof(tokens) / 2);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_all_differ(tokens, COUNT_OF(tokens));
    close(ends[0]);
    close(ends[1]);
    random_close(&random);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_forty_digits_and_differ),
        cmocka_unit_test(all_digits_come_about_as_often),
        cmocka_unit_test(tokens_come_without_a_store_too),
        cmocka_unit_test(a_child_makes_no_token_of_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
