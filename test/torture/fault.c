/*
 * The library's own calls are caught by the linker (--wrap). socket and connect are called inside
 * of hiredis and libevent: the program defines them, and so stands before libc.
 */
#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct {
    enum fault_kind kind;
    size_t calls, first, last;
    bool has_failed;
} armed;

const char *fault_name(enum fault_kind kind) {
    static const char *const names[FAULT_COUNT] = {
        "none", "allocation", "event_add", "sodium_init", "socket", "connect", "hiredis",
    };
    return names[kind];
}

static bool fails(enum fault_kind kind) {
    if (armed.kind != kind) {
        return false;
    }
    armed.calls++;
    bool is_due = armed.calls >= armed.first && armed.calls <= armed.last;
    armed.has_failed |= is_due;
    return is_due;
}

/* ---- the allocator hook ---- */

static void *heap_malloc(size_t size, void *context) {
    struct fault_heap *heap = context;
    void *memory = fails(FAULT_ALLOCATION) ? NULL : malloc(size);
    heap->blocks += memory != NULL;
    return memory;
}

static void *heap_realloc(void *memory, size_t size, void *context) {
    struct fault_heap *heap = context;
    void *larger = fails(FAULT_ALLOCATION) ? NULL : realloc(memory, size);
    heap->blocks += larger != NULL && memory == NULL;
    return larger;
}

static void heap_free(void *memory, void *context) {
    struct fault_heap *heap = context;
    heap->blocks -= memory != NULL;
    free(memory);
}

void fault_heap_init(struct fault_heap *heap) {
    *heap = (struct fault_heap){{heap_malloc, heap_realloc, heap_free, heap}, 0};
}

/* ---- calls of the library ---- */

int __real_event_add(struct event *event, const struct timeval *timeout);
int __wrap_event_add(struct event *event, const struct timeval *timeout);
int __real_sodium_init(void);
int __wrap_sodium_init(void);

int __wrap_event_add(struct event *event, const struct timeval *timeout) {
    return fails(FAULT_EVENT_ADD) ? -1 : __real_event_add(event, timeout);
}

int __wrap_sodium_init(void) {
    return fails(FAULT_SODIUM_INIT) ? -1 : __real_sodium_init();
}

/* ---- calls of hiredis and libevent ---- */

/* Sets a pointer to a function: POSIX allows what ISO C has no way for. */
static void find(const char *name, void *function) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        abort();
    }
    memcpy(function, &found, sizeof(found));
}

/* By other names in C, because glibc's headers declare them in ways of their own. */
int torture_socket(int domain, int type, int protocol) __asm__("socket");
int torture_connect(int fd, const struct sockaddr *address, socklen_t length) __asm__("connect");

int torture_socket(int domain, int type, int protocol) {
    static int (*real)(int, int, int);
    if (real == NULL) {
        find("socket", &real);
    }
    if (fails(FAULT_SOCKET)) {
        errno = EMFILE;
        return -1;
    }
    return real(domain, type, protocol);
}

int torture_connect(int fd, const struct sockaddr *address, socklen_t length) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    if (real == NULL) {
        find("connect", &real);
    }
    if (fails(FAULT_CONNECT)) {
        errno = ENETUNREACH;
        return -1;
    }
    return real(fd, address, length);
}

/* ---- allocations of hiredis ---- */

#if HIREDIS_MAJOR >= 1

static void *hiredis_malloc(size_t size) {
    return fails(FAULT_HIREDIS) ? NULL : malloc(size);
}

static void *hiredis_calloc(size_t count, size_t size) {
    return fails(FAULT_HIREDIS) ? NULL : calloc(count, size);
}

static void *hiredis_realloc(void *memory, size_t size) {
    return fails(FAULT_HIREDIS) ? NULL : realloc(memory, size);
}

static char *hiredis_strdup(const char *text) {
    return fails(FAULT_HIREDIS) ? NULL : strdup(text);
}

const char *fault_why_not(enum fault_kind kind) {
    if (kind == FAULT_HIREDIS) {
        hiredisAllocFuncs functions = {hiredis_malloc, hiredis_calloc, hiredis_realloc,
                                       hiredis_strdup, free};
        hiredisSetAllocators(&functions);
    }
    return NULL;
}

#else

const char *fault_why_not(enum fault_kind kind) {
    return kind == FAULT_HIREDIS ? "hiredis before 1.0 aborts when it has no memory" : NULL;
}

#endif

/* ---- when ---- */

void fault_arm(enum fault_kind kind, size_t first, size_t last) {
    armed.kind = kind;
    armed.calls = 0;
    armed.first = first;
    armed.last = last;
    armed.has_failed = false;
}

bool fault_has_struck(enum fault_kind kind) {
    return armed.kind == kind && armed.has_failed;
}

bool fault_disarm(void) {
    armed.kind = FAULT_NONE;
    return armed.has_failed;
}
