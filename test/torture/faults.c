#include "faults.h"

#if HAS_NAMES
#include <ares.h>
#endif
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static struct {
    enum fault fault;
    bool is_armed;
    unsigned n, count;
    unsigned asked, struck;
} plan;

const char *fault_name(enum fault fault) {
    static const char *const names[FAULT_COUNT] = {
        [FAULT_ALLOC] = "alloc",
        [FAULT_EVENT_ADD] = "event_add",
        [FAULT_SOCKET] = "socket",
        [FAULT_CONNECT] = "connect",
        [FAULT_HIREDIS] = "hiredis",
        [FAULT_SODIUM_INIT] = "sodium_init",
        [FAULT_CARES] = "cares",
        [FAULT_EPOLL_CTL] = "epoll_ctl",
        [FAULT_EPOLL_CREATE] = "epoll_create1",
        [FAULT_TIMERFD_CREATE] = "timerfd_create",
        [FAULT_EVENTFD] = "eventfd",
    };
    return names[fault];
}

bool fault_is_of_loop(enum fault fault) {
    return fault == FAULT_EPOLL_CTL || fault == FAULT_EPOLL_CREATE ||
           fault == FAULT_TIMERFD_CREATE || fault == FAULT_EVENTFD;
}

int fault_errno(enum fault fault) {
    static const int errors[FAULT_COUNT] = {
        [FAULT_EPOLL_CTL] = ENOSPC,
        [FAULT_EPOLL_CREATE] = EMFILE,
        [FAULT_TIMERFD_CREATE] = ENOMEM,
        [FAULT_EVENTFD] = ENFILE,
    };
    return errors[fault];
}

void faults_arm(enum fault fault, unsigned n, unsigned count) {
    plan.fault = fault;
    plan.is_armed = true;
    plan.n = n;
    plan.count = count;
    plan.asked = plan.struck = 0;
}

void faults_disarm(void) {
    plan.is_armed = false;
}

unsigned faults_struck(void) {
    return plan.struck;
}

enum fault faults_kind(void) {
    return plan.fault;
}

static bool strikes(enum fault fault) {
    if (!plan.is_armed || plan.fault != fault) {
        return false;
    }
    plan.asked++;
    if (plan.n == 0 || plan.asked < plan.n || plan.asked >= plan.n + plan.count) {
        return false;
    }
    plan.struck++;
    return true;
}

/* ---- the library's memory ---- */

static void *hook_malloc(size_t size, void *context) {
    size_t *out = context;
    void *memory = strikes(FAULT_ALLOC) ? NULL : malloc(size);
    *out += memory != NULL;
    return memory;
}

static void *hook_realloc(void *memory, size_t size, void *context) {
    size_t *out = context;
    void *moved = strikes(FAULT_ALLOC) ? NULL : realloc(memory, size);
    *out += moved != NULL && memory == NULL;
    return moved;
}

static void hook_free(void *memory, void *context) {
    size_t *out = context;
    *out -= memory != NULL;
    free(memory);
}

redlock_allocator faults_allocator(size_t *out) {
    return (redlock_allocator){hook_malloc, hook_realloc, hook_free, out};
}

/* ---- libevent and libsodium: the linker sends the library's calls here ---- */

int __real_event_add(struct event *event, const struct timeval *timeout);
int __wrap_event_add(struct event *event, const struct timeval *timeout);
int __real_sodium_init(void);
int __wrap_sodium_init(void);

int __wrap_event_add(struct event *event, const struct timeval *timeout) {
    return strikes(FAULT_EVENT_ADD) ? -1 : __real_event_add(event, timeout);
}

int __wrap_sodium_init(void) {
    return strikes(FAULT_SODIUM_INIT) ? -1 : __real_sodium_init();
}

/* ---- the pollable loop's system calls ---- */

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_timerfd_create(int clock, int flags);

/* The end of a watch needs nothing that could be refused. */
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    if (operation != EPOLL_CTL_DEL && strikes(FAULT_EPOLL_CTL)) {
        /* a new watch may exceed /proc/sys/fs/epoll/max_user_watches */
        errno = operation == EPOLL_CTL_ADD ? fault_errno(FAULT_EPOLL_CTL) : ENOMEM;
        return -1;
    }
    return __real_epoll_ctl(epoll, operation, fd, event);
}

static int refuse(enum fault fault) {
    errno = fault_errno(fault);
    return -1;
}

int __wrap_epoll_create1(int flags) {
    return strikes(FAULT_EPOLL_CREATE) ? refuse(FAULT_EPOLL_CREATE) : __real_epoll_create1(flags);
}

int __wrap_eventfd(unsigned value, int flags) {
    return strikes(FAULT_EVENTFD) ? refuse(FAULT_EVENTFD) : __real_eventfd(value, flags);
}

/* The timer of the world's clock is an eventfd too (world.c). */
int __wrap_timerfd_create(int clock, int flags) {
    (void)clock;
    (void)flags;
    return strikes(FAULT_TIMERFD_CREATE) ? refuse(FAULT_TIMERFD_CREATE)
                                         : __real_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* ---- the system: replaces the C library's functions, also for hiredis and libevent ---- */

static int (*real_socket)(int domain, int type, int protocol);
static int (*real_connect)(int fd, __CONST_SOCKADDR_ARG address, socklen_t length);

int socket(int domain, int type, int protocol) {
    if (strikes(FAULT_SOCKET)) {
        errno = EMFILE;
        return -1;
    }
    return real_socket(domain, type, protocol);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length) {
    if (strikes(FAULT_CONNECT)) {
        errno = address.__sockaddr__->sa_family == AF_UNIX ? ECONNREFUSED : ENETUNREACH;
        return -1;
    }
    return real_connect(fd, address, length);
}

/* ---- c-ares' memory ---- */

#if HAS_NAMES
static void *cares_malloc(size_t size) {
    return strikes(FAULT_CARES) ? NULL : malloc(size);
}

static void *cares_realloc(void *memory, size_t size) {
    return strikes(FAULT_CARES) ? NULL : realloc(memory, size);
}

/* Initializes c-ares with these functions. They stay when the library initializes it again. */
static void init_cares(void) {
    if (ares_library_init_mem(ARES_LIB_INIT_ALL, cares_malloc, free, cares_realloc) !=
        ARES_SUCCESS) {
        abort();
    }
}
#else
static void init_cares(void) {
}
#endif

/* ---- hiredis' memory ---- */

#if HIREDIS_MAJOR >= 1
#include <hiredis/alloc.h>
#include <string.h>

static void *hiredis_malloc(size_t size) {
    return strikes(FAULT_HIREDIS) ? NULL : malloc(size);
}

static void *hiredis_calloc(size_t count, size_t size) {
    return strikes(FAULT_HIREDIS) ? NULL : calloc(count, size);
}

static void *hiredis_realloc(void *memory, size_t size) {
    return strikes(FAULT_HIREDIS) ? NULL : realloc(memory, size);
}

static char *hiredis_strdup(const char *text) {
    return strikes(FAULT_HIREDIS) ? NULL : strdup(text);
}

static void init_hiredis(void) {
    hiredisAllocFuncs functions = {
        .mallocFn = hiredis_malloc,
        .callocFn = hiredis_calloc,
        .reallocFn = hiredis_realloc,
        .strdupFn = hiredis_strdup,
        .freeFn = free,
    };
    hiredisSetAllocators(&functions);
}

const char *fault_lack(enum fault fault) {
    (void)fault;
    return NULL;
}
#else
static void init_hiredis(void) {
}

const char *fault_lack(enum fault fault) {
    return fault == FAULT_HIREDIS ? "hiredis before 1.0 ends the process when it has no memory, "
                                    "and takes no allocator from outside"
                                  : NULL;
}
#endif

void faults_init(void) {
    *(void **)&real_socket = dlsym(RTLD_NEXT, "socket");
    *(void **)&real_connect = dlsym(RTLD_NEXT, "connect");
    if (real_socket == NULL || real_connect == NULL) {
        abort();
    }
    init_hiredis();
    init_cares();
}
