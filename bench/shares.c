#include "shares.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Copies the lower-case name at the beginning of `text`, which ends at any byte of `ends`. */
static void copy_name(char name[SHARES_NAME_SIZE], const char *text, const char *ends) {
    size_t length = strcspn(text, ends);

    if (length >= SHARES_NAME_SIZE) {
        length = SHARES_NAME_SIZE - 1;
    }
    for (size_t i = 0; i < length; i++) {
        name[i] = (char)tolower((unsigned char)text[i]);
    }
    name[length] = '\0';
}

/* Returns the share of a name; NULL if there is none. */
static const struct share *find(const struct shares *shares, const char *name) {
    for (size_t i = 0; i < shares->count; i++) {
        if (strcmp(shares->list[i].name, name) == 0) {
            return &shares->list[i];
        }
    }
    return NULL;
}

static struct share *find_or_add(struct shares *shares, const char *name) {
    const struct share *share = find(shares, name);

    if (share != NULL) {
        return &shares->list[share - shares->list];
    }
    if (shares->count == SHARES_MAX) {
        return NULL;
    }
    strcpy(shares->list[shares->count].name, name);
    return &shares->list[shares->count++];
}

/* A line is: 1700000000.123456 [0 127.0.0.1:50000] "SET" "key"; of a script: ... [0 lua] "get" ...
 */
void shares_record(struct shares *shares, const char *line) {
    const char *source = strchr(line, '[');
    const char *command = source != NULL ? strstr(source, "] \"") : NULL;
    char name[SHARES_NAME_SIZE];
    struct share *share;

    if (command == NULL) {
        return;
    }
    copy_name(name, command + 3, "\"");
    share = find_or_add(shares, name);
    if (share != NULL) {
        share->seen++;
        share->sent += strncmp(command - 4, " lua", 4) != 0;
    }
}

uint64_t shares_sent(const struct shares *shares) {
    uint64_t sent = 0;

    for (size_t i = 0; i < shares->count; i++) {
        sent += shares->list[i].sent;
    }
    return sent;
}

/* A line is: cmdstat_set:calls=21,usec=...; with a subcommand: cmdstat_client|setname:calls=... */
double shares_count(const struct shares *shares, const char *statistics) {
    static const char title[] = "cmdstat_";
    double count = 0;

    for (const char *line = strstr(statistics, title); line != NULL; line = strstr(line, title)) {
        const char *calls = strstr(line, ":calls=");
        const struct share *share;
        char name[SHARES_NAME_SIZE];

        line += strlen(title);
        copy_name(name, line, "|:");
        share = find(shares, name);
        if (calls != NULL && share != NULL && strcmp(name, "info") != 0) {
            count += (double)strtoull(calls + strlen(":calls="), NULL, 10) * (double)share->sent /
                     (double)share->seen;
        }
    }
    return count;
}
