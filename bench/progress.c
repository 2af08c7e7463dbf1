#include "progress.h"

#include "clock.h"
#include "memory.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INTERVAL_S 0.5
#define LINE_SIZE 79 /* including the NUL: fits a terminal of 80 columns */
#define CLEAR "\r\033[K"

struct progress {
    struct event *timer;
    progress_write *write;
    void *arg;
};

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    const struct progress *progress = arg;
    char line[LINE_SIZE] = "";

    (void)fd;
    (void)what;
    progress->write(progress->arg, line, sizeof(line));
    fprintf(stderr, CLEAR "%s", line);
}

struct progress *progress_create(struct event_base *base, progress_write *write, void *arg) {
    struct timeval interval = clock_interval(INTERVAL_S);
    struct progress *progress;

    if (!isatty(STDERR_FILENO)) {
        return NULL;
    }
    progress = memory_take(1, sizeof(*progress));
    *progress = (struct progress){.write = write, .arg = arg};
    progress->timer = event_new(base, -1, EV_PERSIST, on_timer, progress);
    if (progress->timer == NULL || event_add(progress->timer, &interval) != 0) {
        progress_destroy(progress);
        return NULL;
    }
    return progress;
}

void progress_destroy(struct progress *progress) {
    if (progress == NULL) {
        return;
    }
    if (progress->timer != NULL) {
        event_free(progress->timer);
    }
    fputs(CLEAR, stderr);
    free(progress);
}
