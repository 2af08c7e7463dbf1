#include "descriptors.h"

#include <sys/resource.h>

size_t descriptors_limit(void) {
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (size_t)limit.rlim_cur : 0;
}

size_t descriptors_raise_limit(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return descriptors_limit();
}
