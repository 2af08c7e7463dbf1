#include "words.h"

#include "resp.h"

size_t words_read(struct words *words, const char *bytes, size_t length) {
    struct resp_cursor cursor = {bytes, bytes + length};
    size_t count;
    if (resp_read_header(&cursor, '*', &count) <= 0 || count == 0 || count > WORDS_MAX) {
        return 0;
    }
    words->count = (unsigned)count;
    for (unsigned i = 0; i < words->count; i++) {
        struct word *word = &words->word[i];
        if (resp_read_bulk(&cursor, &word->text, &word->length) <= 0) {
            return 0;
        }
    }
    return (size_t)(cursor.at - bytes);
}

bool word_number(const struct word *word, long long *number) {
    bool is_negative = word->length > 0 && word->text[0] == '-';
    long long value = 0;
    for (size_t i = is_negative; i < word->length; i++) {
        if (word->text[i] < '0' || word->text[i] > '9' || value > 100000000000000000) {
            return false;
        }
        value = value * 10 + (word->text[i] - '0');
    }
    *number = is_negative ? -value : value;
    return word->length > (size_t)is_negative;
}
