#include "harness.h"
#include "outer.h"

#include <redlock/sdevent.h>
#include <stdio.h>
#include <string.h>

struct outer {
    sd_event *event;
    redlock_sdevent *adapters[OUTER_ADAPTERS];
    sd_event_source *timer;
    void (*on_tick)(void *arg);
    void *arg;
};

const bool outer_can_nest = false;

struct outer *outer_open(void) {
    struct outer *outer = calloc(1, sizeof(*outer));

    assert_non_null(outer);
    assert_true(sd_event_new(&outer->event) >= 0);
    return outer;
}

/* A source that is left would keep the event and its descriptors. */
void outer_close(struct outer *outer) {
    assert_null(sd_event_unref(outer->event));
    free(outer);
}

redlock_loop *outer_attach(struct outer *outer, size_t number) {
    outer->adapters[number] = redlock_sdevent_attach(outer->event);
    return outer->adapters[number] != NULL ? outer->adapters[number]->loop : NULL;
}

void outer_detach(struct outer *outer, size_t number) {
    redlock_sdevent_detach(outer->adapters[number]);
}

void outer_refuses(void) {
    redlock_sdevent_detach(NULL);
    errno = 0;
    assert_null(redlock_sdevent_attach(NULL));
    assert_int_equal(errno, EINVAL);
}

void outer_turn(struct outer *outer) {
    assert_true(sd_event_run(outer->event, UINT64_MAX) >= 0);
}

/* Returns the number of descriptors that the event's epoll watches, from the kernel. */
static size_t watched(struct outer *outer) {
    char path[64];
    char line[256];
    FILE *file;
    size_t count = 0;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", sd_event_get_fd(outer->event));
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        count += strncmp(line, "tfd:", 4) == 0;
    }
    fclose(file);
    return count;
}

/* The descriptor of the event's timers stays when there is none. */
bool outer_is_empty(struct outer *outer) {
    return watched(outer) == (outer->on_tick != NULL);
}

static int on_timer(sd_event_source *source, uint64_t at_us, void *arg) {
    struct outer *outer = arg;
    (void)at_us;
    outer->on_tick(outer->arg);
    if (outer->timer != NULL) {
        assert_true(sd_event_source_set_time_relative(source, 1000) >= 0);
        assert_true(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0);
    }
    return 0;
}

void outer_start_timer(struct outer *outer, void (*on_tick)(void *arg), void *arg) {
    outer->on_tick = on_tick;
    outer->arg = arg;
    assert_true(sd_event_add_time_relative(outer->event, &outer->timer, CLOCK_MONOTONIC, 1000, 1,
                                           on_timer, outer) >= 0);
}

void outer_stop_timer(struct outer *outer) {
    outer->timer = sd_event_source_unref(outer->timer);
}

bool outer_is_quiet_in_child(struct outer *outer) {
    return sd_event_run(outer->event, 0) == -ECHILD;
}
