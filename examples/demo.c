/*
 * Shows on the terminal what locks on five Redis masters do and what they survive. Each step checks
 * its claims; the first false claim ends the demo with exit status 1.
 */
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct demo {
    const char *name; /* argument of demo.sh; "": no argument */
    const char *about;
    bool (*play)(struct stage *stage);
};

static const struct demo demos[] = {
    {"", "acquire, contention, renewal, crashes, loss, recovery", demo_locks},
    {"fence", "a writer that was stopped for too long, and a store's check", demo_fence},
    {"readers", "readers share a key, and make room for a writer", demo_readers},
    {"several", "several keys in one lock: all of them or none", demo_several},
    {"permits", "a semaphore: so many may hold it at once", demo_permits},
    {"stay", "keys that stay after an early release, or after their holder died", demo_stay},
    {"replicas", "masters whose replicas have to confirm a grant", demo_replicas},
    {"inspect", "who holds a key, and whether a fence is still the newest", demo_inspect},
    {"waiting", "a line that goes on when a holder is killed, or stopped", demo_waiting},
    {"command", "redlock, the command: for shells and operators", demo_command},
};

#define DEMO_COUNT (sizeof(demos) / sizeof(demos[0]))

static const struct demo *find(const char *name) {
    for (size_t i = 0; i < DEMO_COUNT; i++) {
        if (strcmp(demos[i].name, name) == 0) {
            return &demos[i];
        }
    }
    return NULL;
}

static void print_usage(void) {
    fputs("usage: sh examples/demo.sh [NAME]\n\n", stderr);
    for (size_t i = 0; i < DEMO_COUNT; i++) {
        fprintf(stderr, "    %-10s %s\n", demos[i].name, demos[i].about);
    }
}

int main(int argc, char **argv) {
    const struct demo *demo = argc <= 2 ? find(argc == 2 ? argv[1] : "") : NULL;
    struct stage stage;
    bool done;

    if (demo == NULL) {
        print_usage();
        return 2;
    }
    printf("libredlock %s on %d Redis masters, started on this machine for the demo.\n"
           "A lock needs %d of them.\n\n",
           redlock_version(), STAGE_MASTERS, STAGE_QUORUM);
    fflush(stdout);
    done = stage_init(&stage) == 0 && demo->play(&stage);
    if (stage_finish(&stage) != 0) {
        done = false;
    }
    if (done) {
        puts("Each step did what it said.");
    }
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
