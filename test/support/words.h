/* One command as a server reads it (RESP2: an array of bulk strings). */
#ifndef REDLOCK_TEST_WORDS_H
#define REDLOCK_TEST_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define WORDS_MAX 640

struct word {
    const char *text; /* points into the bytes that were read */
    size_t length;
};

struct words {
    struct word word[WORDS_MAX];
    unsigned count;
};

/* Reads the first command. Returns its length; 0 when it is incomplete or no command. */
size_t words_read(struct words *words, const char *bytes, size_t length);

static inline bool word_is(const struct word *word, const char *text) {
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

/* Reads a decimal number. Returns false when the word is none. */
bool word_number(const struct word *word, long long *number);

#endif
