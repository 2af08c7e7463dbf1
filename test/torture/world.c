#include "world.h"

#include "masters.h"
#if HAS_NAMES
#include "name_settings.h"
#endif

#include <dirent.h>
#include <event2/event.h>
#include <poll.h>
#include <redlock/loop.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NANOS_PER_MS UINT64_C(1000000)

/* The limit of every wait, much longer than any wait after any failure. */
#define TIMEOUT_MS 20000

/* The number of turns without a question to a master after which time passes faster. */
#define QUIET_TURNS 3

static struct event_base *loop;
static uint64_t now;
static uint64_t random_state;
static unsigned quiet;
static unsigned descriptors;

/* The pollable loop of a run, and its timer: an eventfd, which gets readable at `wakes_at`. */
static struct {
    bool is_used;
    redlock_loop *loop; /* NULL: not created yet */
    int timer;
    uint64_t wakes_at; /* UINT64_MAX: never */
} pollable;

void check_failed(const char *file, int line, const char *condition) {
    fflush(stdout);
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    _exit(1);
}

/* ---- clock and chance ---- */

uint64_t world_now(void) {
    return now;
}

/* Replaces the C library's function, also for libevent: the monotonic clocks are ours. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_BOOTTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE) {
        return (int)syscall(SYS_clock_gettime, clock, time);
    }
    time->tv_sec = (time_t)(now / (1000 * NANOS_PER_MS));
    time->tv_nsec = (long)(now % (1000 * NANOS_PER_MS));
    return 0;
}

void __wrap_randombytes_buf(void *bytes, size_t size);

void __wrap_randombytes_buf(void *bytes, size_t size) {
    unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++) {
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        byte[i] = (unsigned char)(random_state >> 56);
    }
}

/* ---- the pollable loop ---- */

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *before);

/* Replaces that of the library: the kernel does not know our clock. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *before) {
    const struct timespec *delay = &value->it_value;
    CHECK(flags == 0 && before == NULL && value->it_interval.tv_sec == 0);
    CHECK(delay->tv_sec > 0 || delay->tv_nsec > 0);
    pollable.timer = fd;
    pollable.wakes_at =
        now + (uint64_t)delay->tv_sec * 1000 * NANOS_PER_MS + (uint64_t)delay->tv_nsec;
    return 0;
}

bool world_is_pollable(void) {
    return pollable.is_used;
}

redlock_loop *world_pollable(void) {
    if (pollable.loop == NULL) {
        pollable.wakes_at = UINT64_MAX;
        pollable.loop = redlock_loop_pollable();
    }
    return pollable.loop;
}

/* Runs the loop if its descriptor is readable, as the loop of a program would. */
static void run_pollable(void) {
    struct pollfd fd = {.fd = redlock_loop_fd(pollable.loop), .events = POLLIN};
    const uint64_t one = 1;
    if (now >= pollable.wakes_at) {
        pollable.wakes_at = UINT64_MAX;
        CHECK(write(pollable.timer, &one, sizeof(one)) == sizeof(one));
    }
    CHECK(poll(&fd, 1, 0) >= 0);
    if (fd.revents != 0) {
        CHECK(redlock_loop_run(pollable.loop, 0) == 0);
    }
}

static void end_pollable(void) {
    redlock_loop_free(pollable.loop);
    pollable.loop = NULL;
}

/* ---- a run ---- */

static unsigned count_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

#if HAS_NAMES
/* Makes a hosts file that knows one name. Returns its path. */
static const char *make_hosts(void) {
    static const char text[] = "127.0.0.1 localhost\n";
    static char path[32];
    int fd = memfd_create("hosts", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return path;
}
#endif

void world_begin(bool is_pollable) {
    if (loop == NULL) {
        now = 1000000 * NANOS_PER_MS;
        loop = event_base_new();
        CHECK(loop != NULL);
        masters_listen();
#if HAS_NAMES
        name_settings_use(make_hosts(), masters_name_server());
#endif
    }
    pollable.is_used = is_pollable;
    quiet = 0;
    random_state = 1;
    masters_reset();
    descriptors = count_descriptors();
}

void world_end(void) {
    masters_reset();
    end_pollable();
    CHECK(event_base_get_num_events(loop, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE) == 0);
    CHECK(count_descriptors() == descriptors);
}

struct event_base *world_loop(void) {
    return loop;
}

void world_turn(void) {
    quiet = masters_turn() ? 0 : quiet + 1;
    if (pollable.loop != NULL) {
        run_pollable();
    } else {
        event_base_loop(loop, EVLOOP_NONBLOCK);
    }
    now += quiet > QUIET_TURNS ? NANOS_PER_MS / 2 : NANOS_PER_MS / 50;
}

void world_wait(bool (*condition)(const void *arg), const void *arg, const char *what) {
    uint64_t deadline = now + TIMEOUT_MS * NANOS_PER_MS;
    while (!condition(arg)) {
        if (now >= deadline) {
            check_failed("timeout", TIMEOUT_MS, what);
        }
        world_turn();
    }
}

void world_pass_ms(unsigned ms) {
    uint64_t until = now + ms * NANOS_PER_MS;
    while (now < until) {
        world_turn();
    }
}
