#include "words.h"

struct cursor {
    const char *at, *end;
};

/* "<kind><number>\r\n" */
static bool read_header(struct cursor *cursor, char kind, size_t *number) {
    if (cursor->at == cursor->end || *cursor->at != kind) {
        return false;
    }
    *number = 0;
    for (cursor->at++; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9';
         cursor->at++) {
        *number = *number * 10 + (size_t)(*cursor->at - '0');
    }
    if (cursor->end - cursor->at < 2 || cursor->at[0] != '\r' || cursor->at[1] != '\n') {
        return false;
    }
    cursor->at += 2;
    return true;
}

static bool read_bulk(struct cursor *cursor, struct word *word) {
    size_t length;
    if (!read_header(cursor, '$', &length) || (size_t)(cursor->end - cursor->at) < length + 2) {
        return false;
    }
    *word = (struct word){cursor->at, length};
    cursor->at += length + 2;
    return true;
}

size_t words_read(struct words *words, const char *bytes, size_t length) {
    struct cursor cursor = {bytes, bytes + length};
    size_t count;
    if (!read_header(&cursor, '*', &count) || count == 0 || count > WORDS_MAX) {
        return 0;
    }
    words->count = (unsigned)count;
    for (unsigned i = 0; i < words->count; i++) {
        if (!read_bulk(&cursor, &words->word[i])) {
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
