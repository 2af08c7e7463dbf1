#include "actions.h"

#include "actions_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    int64_t at;   /* CLOCK_BOOTTIME */
    size_t order; /* among lines of the same instant */
    char text[160];
};

struct clock_sample {
    int64_t at, unix_ns;
};

static void *grown(void *list, size_t count, size_t size) {
    if ((count & (count - 1)) != 0) { /* room for a power of two */
        return list;
    }
    list = realloc(list, (count == 0 ? 1 : 2 * count) * size);
    if (list == NULL) {
        perror("redlock-chaos");
        exit(EXIT_FAILURE);
    }
    return list;
}

/* ---- logs ---- */

static int read_log(struct log *log, const char *folder, const char *name, uint32_t number) {
    char path[512];
    FILE *file;

    *log = (struct log){0};
    snprintf(path, sizeof(path), "%s/%s-%u.actions", folder, name, number);
    file = fopen(path, "re");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return -1;
    }
    log->length = (size_t)ftell(file);
    rewind(file);
    log->bytes = malloc(log->length + 1);
    if (log->bytes == NULL || fread(log->bytes, 1, log->length, file) != log->length) {
        perror(path);
        fclose(file);
        return -1;
    }
    fclose(file);
    return 0;
}

size_t log_frame(const struct log *log, size_t at, struct frame *frame, char text[256]) {
    if (log->length - at < sizeof(*frame)) {
        return 0;
    }
    memcpy(frame, log->bytes + at, sizeof(*frame));
    if (log->length - at - sizeof(*frame) < frame->length) {
        return 0; /* a process was killed while it wrote */
    }
    snprintf(text, 256, "%.*s", frame->kind == FRAME_COMMAND ? 0 : (int)frame->length,
             log->bytes + at + sizeof(*frame));
    return at + sizeof(*frame) + frame->length;
}

/* ---- clocks ---- */

/* Returns by how much the servers' clock, Unix time, is ahead of CLOCK_BOOTTIME. */
static int64_t lead_at(const struct run *run, int64_t at) {
    const struct clock_sample *samples = run->samples;
    size_t before = 0;
    size_t after = run->sample_count - 1;

    while (after - before > 1) {
        size_t middle = before + (after - before) / 2;

        if (samples[middle].at < at) {
            before = middle;
        } else {
            after = middle;
        }
    }
    int64_t span = samples[after].at - samples[before].at;
    int64_t part = at - samples[before].at;
    int64_t lead = samples[before].unix_ns - samples[before].at;
    int64_t change = samples[after].unix_ns - samples[after].at - lead;
    part = part < 0 ? 0 : part < span ? part : span;
    return lead + change * (part / 1000) / (span / 1000);
}

int64_t run_unix(const struct run *run, int64_t at) {
    return at + lead_at(run, at);
}

int64_t run_instant(const struct run *run, int64_t unix_ns, int64_t near) {
    return unix_ns - lead_at(run, near);
}

int64_t run_expiry(const struct run *run, int64_t expires_ms) {
    return ns_of_ms(expires_ms + 1) - run_unix(run, run->begun_at);
}

static int collect_samples(struct run *run, const struct log *log) {
    struct frame frame;
    char text[256];

    for (size_t at = 0, end; (end = log_frame(log, at, &frame, text)) != 0; at = end) {
        run->samples = grown(run->samples, run->sample_count, sizeof(*run->samples));
        run->samples[run->sample_count++] =
            (struct clock_sample){.at = (int64_t)frame.at_ns, .unix_ns = strtoll(text, NULL, 10)};
    }
    return run->sample_count > 1 ? 0 : -1;
}

/* ---- lines ---- */

void run_add_line(struct run *run, int64_t at, const char *format, ...) {
    struct line *line;
    va_list values;

    run->lines = grown(run->lines, run->line_count, sizeof(*run->lines));
    line = &run->lines[run->line_count];
    line->at = at;
    line->order = run->line_count++;
    va_start(values, format);
    vsnprintf(line->text, sizeof(line->text), format, values);
    va_end(values);
}

static int by_token(const void *a, const void *b) {
    const struct sent *left = a;
    const struct sent *right = b;
    int tokens = strcmp(left->token, right->token);

    return tokens != 0 ? tokens : (left->at > right->at) - (left->at < right->at);
}

const struct sent *run_first_sent(const struct run *run, const char *token) {
    size_t low = 0;
    size_t high = run->sent_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(run->sent[middle].token, token) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < run->sent_count && strcmp(run->sent[low].token, token) == 0 ? &run->sent[low]
                                                                             : NULL;
}

const char *run_name(const struct run *run, const char *token) {
    static char name[64];
    const struct sent *first = run_first_sent(run, token);

    snprintf(name, sizeof(name), "%u.%s", first != NULL ? first->client : run->options->clients,
             token);
    return name;
}

/* ---- clients ---- */

static void add_sent(struct run *run, const struct frame *frame, const char *text,
                     uint32_t client) {
    struct sent sent = {.at = (int64_t)frame->at_ns, .client = client};

    if (sscanf(text, "%u %40s %c %lld %u", &sent.key, sent.token, &sent.kind, &sent.ttl_ms,
               &sent.node) == 5) {
        run->sent = grown(run->sent, run->sent_count, sizeof(*run->sent));
        run->sent[run->sent_count++] = sent;
    }
}

static int collect_sent(struct run *run, const struct log *logs) {
    struct frame frame;
    char text[256];

    for (uint32_t client = 0; client < run->options->clients; client++) {
        for (size_t at = 0, end; (end = log_frame(&logs[client], at, &frame, text)) != 0;
             at = end) {
            if (run->begun_at == 0 || (int64_t)frame.at_ns < run->begun_at) {
                run->begun_at = (int64_t)frame.at_ns;
            }
            if (frame.kind == FRAME_SEND) {
                add_sent(run, &frame, text, client);
            }
        }
    }
    if (run->sent_count == 0) {
        fputs("redlock-chaos: no client has sent anything\n", stderr);
        return -1;
    }
    qsort(run->sent, run->sent_count, sizeof(*run->sent), by_token);
    return 0;
}

static void add_lines_of_client(struct run *run, const struct log *log) {
    struct frame frame;
    char text[256];
    char token[TOKEN_SIZE];
    unsigned key, node, votes;
    unsigned long long number;
    char kind;

    for (size_t at = 0, end; (end = log_frame(log, at, &frame, text)) != 0; at = end) {
        int64_t when = (int64_t)frame.at_ns;

        if (frame.kind == FRAME_SEND &&
            sscanf(text, "%u %40s %c %llu", &key, token, &kind, &number) == 4) {
            run_add_line(run, when, "s %u %s %c %" PRId64, key, run_name(run, token), kind,
                         ns_of_ms((int64_t)number));
        } else if (frame.kind == FRAME_PUSHED &&
                   sscanf(text, "%u %40s %u %llu", &key, token, &node, &number) == 4) {
            run_add_line(run, when, "r %u %s %u %" PRId64, key, run_name(run, token), node,
                         run_expiry(run, (int64_t)number));
        } else if (frame.kind == FRAME_HOLD &&
                   sscanf(text, "%u %40s %llu %u", &key, token, &number, &votes) == 4) {
            const unsigned all = (1u << MASTERS) - 1;

            run_add_line(run, when, "h %u %s %u 0 %u 0 %u %" PRId64, key, run_name(run, token), all,
                         all, votes, (int64_t)number - run->begun_at);
        } else if (sscanf(text, "%u %40s", &key, token) == 2) {
            run_add_line(run, when, "%c %u %s", (int)frame.kind, key, run_name(run, token));
        }
    }
}

/* ---- the run ---- */

static int by_time(const void *a, const void *b) {
    const struct line *left = a;
    const struct line *right = b;

    return left->at != right->at ? (left->at > right->at) - (left->at < right->at)
                                 : (left->order > right->order) - (left->order < right->order);
}

static int print(const struct run *run, FILE *file) {
    const struct options *options = run->options;
    const int64_t unix_begun = run_unix(run, run->begun_at);
    int64_t written_at = -1;

    fprintf(file, "w chaos %" PRIu64 " faults %u %d %u 990000 1000000 %" PRId64 " %" PRId64 "\n",
            options->seed, options->keys, MASTERS, options->clients + 1, ns_of_ms(2) - 1000,
            ns_of_ms((int64_t)options->ttl_ms));
    for (size_t i = 0; i < run->line_count; i++) {
        const struct line *line = &run->lines[i];

        if (line->at != written_at) {
            fputc('t', file);
            for (uint32_t n = 0; n < MASTERS; n++) {
                fprintf(file, " %" PRId64, run_unix(run, line->at) - unix_begun);
            }
            for (uint32_t n = 0; n < options->clients; n++) {
                fprintf(file, " %" PRId64, line->at - run->begun_at);
            }
            fputc('\n', file);
            written_at = line->at;
        }
        fprintf(file, "%s\n", line->text);
    }
    return ferror(file);
}

static int make(struct run *run, const char *folder, FILE *file) {
    const uint32_t clients = run->options->clients;
    static struct log client_logs[MAX_CLIENTS], master_logs[MASTERS], clock_log;

    for (uint32_t i = 0; i < clients; i++) {
        if (read_log(&client_logs[i], folder, "client", i) != 0) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < MASTERS; i++) {
        if (read_log(&master_logs[i], folder, "master", i) != 0) {
            return -1;
        }
    }
    if (read_log(&clock_log, folder, "clock", 0) != 0 || collect_samples(run, &clock_log) != 0 ||
        collect_sent(run, client_logs) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < clients; i++) {
        add_lines_of_client(run, &client_logs[i]);
    }
    for (uint32_t i = 0; i < MASTERS; i++) {
        actions_master(run, &master_logs[i], i);
    }
    qsort(run->lines, run->line_count, sizeof(*run->lines), by_time);
    return print(run, file);
}

int actions_write(const char *folder, const struct options *options, FILE *file) {
    struct run run = {.options = options};
    int outcome = make(&run, folder, file);

    if (fclose(file) != 0 && outcome == 0) {
        fprintf(stderr, "redlock-chaos: --actions: %s: %s\n", options->actions, strerror(errno));
        outcome = -1;
    }
    return outcome;
}
