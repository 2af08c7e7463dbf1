#include "refusals.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define BLOCKS_MAX 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* All under the mutex. */
static struct plan {
    bool is_armed;
    bool is_local; /* only calls of `thread` count */
    pthread_t thread;
    enum refusable what;
    unsigned n, count;
    unsigned asked, refused;
    int error;
} plan;

static struct {
    bool is_watched;
    size_t count;
    void *blocks[BLOCKS_MAX]; /* in use */
} memory;

static size_t threads;

/* ---- plans ---- */

static void arm(struct plan next) {
    pthread_mutex_lock(&mutex);
    plan = next;
    plan.is_armed = true;
    pthread_mutex_unlock(&mutex);
}

void refusals_begin(enum refusable what, unsigned n, unsigned count, int error) {
    arm((struct plan){.what = what, .n = n, .count = count, .error = error});
}

void refusals_begin_here(void) {
    arm((struct plan){.is_local = true,
                      .thread = pthread_self(),
                      .what = REFUSABLE_MEMORY,
                      .n = 1,
                      .count = 1,
                      .error = ENOMEM});
}

unsigned refusals_end(void) {
    pthread_mutex_lock(&mutex);
    unsigned refused = plan.refused;
    plan.is_armed = false;
    pthread_mutex_unlock(&mutex);
    return refused;
}

/* Returns the error of a call that must fail; 0: it may succeed. */
static int refusal(enum refusable what) {
    int error = 0;

    pthread_mutex_lock(&mutex);
    bool counts = !plan.is_local || pthread_equal(plan.thread, pthread_self());
    if (plan.is_armed && plan.what == what && counts) {
        plan.asked++;
        if (plan.asked >= plan.n && plan.asked - plan.n < plan.count) {
            plan.refused++;
            error = plan.error;
        }
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

/* Returns whether a call must fail, with errno set. */
static bool is_refused(enum refusable what) {
    int error = refusal(what);

    if (error != 0) {
        errno = error;
    }
    return error != 0;
}

/* ---- memory ---- */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __real_free(void *block);
void __wrap_free(void *block);

void refusals_watch_memory(void) {
    pthread_mutex_lock(&mutex);
    memory.is_watched = true;
    memory.count = 0;
    pthread_mutex_unlock(&mutex);
}

size_t refusals_memory_left(void) {
    pthread_mutex_lock(&mutex);
    size_t left = memory.count;
    memory.is_watched = false;
    memory.count = 0;
    pthread_mutex_unlock(&mutex);
    return left;
}

static void *add(void *block) {
    pthread_mutex_lock(&mutex);
    if (memory.is_watched && block != NULL) {
        if (memory.count == BLOCKS_MAX) {
            abort();
        }
        memory.blocks[memory.count++] = block;
    }
    pthread_mutex_unlock(&mutex);
    return block;
}

static void remove_block(const void *block) {
    pthread_mutex_lock(&mutex);
    for (size_t i = memory.count; i-- > 0;) { /* most are freed soon */
        if (memory.blocks[i] == block) {
            memory.blocks[i] = memory.blocks[--memory.count];
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
}

void *__wrap_malloc(size_t size) {
    return is_refused(REFUSABLE_MEMORY) ? NULL : add(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return is_refused(REFUSABLE_MEMORY) ? NULL : add(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size) {
    if (is_refused(REFUSABLE_MEMORY)) {
        return NULL;
    }
    remove_block(block);
    return add(__real_realloc(block, size));
}

/* Removes the block first: freed memory may be another thread's at once. */
void __wrap_free(void *block) {
    remove_block(block);
    __real_free(block);
}

/* ---- threads ---- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

static void count_thread(size_t change) {
    pthread_mutex_lock(&mutex);
    threads += change;
    pthread_mutex_unlock(&mutex);
}

size_t refusals_threads(void) {
    pthread_mutex_lock(&mutex);
    size_t count = threads;
    pthread_mutex_unlock(&mutex);
    return count;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg) {
    int problem = refusal(REFUSABLE_THREAD);

    problem = problem != 0 ? problem : __real_pthread_create(thread, attributes, run, arg);
    if (problem == 0) {
        count_thread(1);
    }
    return problem;
}

int __wrap_pthread_join(pthread_t thread, void **result) {
    int problem = __real_pthread_join(thread, result);

    if (problem == 0) {
        count_thread((size_t)-1);
    }
    return problem;
}

/* ---- descriptors ---- */

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);

int __wrap_epoll_create1(int flags) {
    return is_refused(REFUSABLE_EPOLL) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    return operation != EPOLL_CTL_DEL && is_refused(REFUSABLE_WATCH)
               ? -1
               : __real_epoll_ctl(epoll, operation, fd, event);
}

int __wrap_timerfd_create(int clock, int flags) {
    return is_refused(REFUSABLE_TIMER) ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_eventfd(unsigned value, int flags) {
    return is_refused(REFUSABLE_WAKER) ? -1 : __real_eventfd(value, flags);
}

/* ---- random numbers ---- */

int __real_sodium_init(void);
int __wrap_sodium_init(void);

int __wrap_sodium_init(void) {
    return refusal(REFUSABLE_RANDOM) != 0 ? -1 : __real_sodium_init();
}
