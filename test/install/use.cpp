/* The smallest program that uses the installed headers of C++: see use.c. */
#include <cstdio>
#include <event2/event.h>
#include <redlock.hpp>
#include <redlock/mutex.hpp>
#if __cplusplus >= 202002L
#include <redlock/coroutines.hpp>
#endif

int main() {
    redlock::error error;
    event_base *base = event_base_new();
    /* Refused, but it pulls in all of the library at link time. */
    redlock::client client = redlock::client::create(base, {}, &error);

    event_base_free(base);
    if (client || error.code != redlock::status::invalid) {
        std::fprintf(stderr, "a client without nodes: %s\n", error.message.c_str());
        return 1;
    }
    return 0;
}
