/*
 * Lines of processes that are hard to catch: each forks and ends, in a session of its own, again
 * and again. A program of its own, without sanitizers: with them a fork takes as long as a process
 * lives here, and the lines would leave no core to anyone.
 *
 * Descriptor 9 gets a message when all lines have begun.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LINES 4
/* Lives of the processes, in ms: short before the validity of the lock ends. */
#define LIFE_LONG 20
#define LIFE_SHORT 2
#define SHORT_FOR 2000

static uint64_t wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * The numbers of processes are few, and a stopped keeper keeps those of all that have ended.
 * Therefore short lives begin late.
 */
static _Noreturn void be_line(uint64_t valid_until_ms) {
    for (;;) {
        long life_ms = wall_ms() + SHORT_FOR < valid_until_ms ? LIFE_LONG : LIFE_SHORT;
        const struct timespec life = {.tv_nsec = life_ms * 1000000};

        nanosleep(&life, NULL);
        setsid();
        if (fork() > 0) {
            _exit(EXIT_SUCCESS);
        }
    }
}

int main(void) {
    const char *valid_until = getenv("REDLOCK_VALID_UNTIL");

    if (valid_until == NULL) {
        return EXIT_FAILURE;
    }
    for (int i = 0; i < LINES; i++) {
        if (fork() == 0) {
            be_line(strtoull(valid_until, NULL, 10));
        }
    }
    (void)!write(9, "alive", 5);
    for (;;) {
        pause();
    }
}
