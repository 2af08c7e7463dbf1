#include "missing_rights.h"

#include "master_data.h"

#include <stdio.h>
#include <string.h>

void change_rights(struct fixture *f, const char *rules) {
    char command[320];

    snprintf(command, sizeof(command), "ACL SETUSER " POOR " %s", rules);
    send_to(f, 0, masters_count(f->masters), command);
}

redlock_client *connect_without(struct fixture *f, const char *rules) {
    char text[REDLOCK_MAX_NODES][64];
    const char *uris[REDLOCK_MAX_NODES];
    size_t count = masters_count(f->masters);

    change_rights(f, "on >pw ~* &* +@all");
    change_rights(f, rules);
    for (size_t i = 0; i < count; i++) {
        snprintf(text[i], sizeof(text[i]), "redis://" POOR ":pw@%s",
                 masters_address(f->masters, i));
        uris[i] = text[i];
    }
    redlock_options options = patient_options(f, uris, count);
    return connect_with(f, &options);
}

size_t warnings(struct fixture *f, size_t node, const char *subject, const char *text) {
    char start[96];
    size_t count = 0;

    snprintf(start, sizeof(start), "node %s: %s: ", masters_address(f->masters, node), subject);
    for (size_t i = 0; i < f->capture.count && i < LOG_CAPTURE_LINES; i++) {
        const char *line = f->capture.lines[i];

        count += strstr(line, start) != NULL && strstr(line, text) != NULL;
    }
    return count;
}

struct naming {
    struct fixture *f;
    const char *subject, *text;
};

static bool is_named_at_all(void *arg) {
    const struct naming *naming = arg;

    for (size_t i = 0; i < masters_count(naming->f->masters); i++) {
        if (warnings(naming->f, i, naming->subject, naming->text) == 0) {
            return false;
        }
    }
    return true;
}

void wait_warnings(struct fixture *f, const char *subject, const char *text) {
    struct naming naming = {f, subject, text};

    run_until(f, is_named_at_all, &naming, "the log warns of each node");
}
