/*
 * redlock.hpp, and in C++20 its coroutines, without exceptions and RTTI: all of it compiles, and
 * empty objects refuse calls.
 */
#include <redlock.hpp>
#if __cplusplus >= 202002L
#include <redlock/coroutines.hpp>
#endif

using redlock::status;

#ifdef REDLOCK_COROUTINES_HPP
static redlock::task await_all(redlock::client &client, redlock::lock &lock) {
    redlock::acquisition got = co_await client.acquire({}, redlock::on_lost{[](status) {}});
    status all[] = {co_await lock.release(),
                    co_await lock.extend(),
                    co_await lock.lost(),
                    co_await client.check_fence("key", 1),
                    (co_await client.inspect("key")).code,
                    co_await client.ready(redlock::forever)};
    (void)all;
}
#endif

static bool is_refused(redlock::client &client, redlock::lock &lock) {
    bool is_accepted = bool(client.acquire({}, [](redlock::acquisition) {}));
    status codes[] = {
        lock.release([](const redlock::outcome &) {}),
        lock.extend(std::chrono::seconds(1), [](status) {}),
        client.inspect("key", [](const redlock::view &) {}),
        client.check_fence("key", 1, [](status) {}),
        client.ready(redlock::forever, [](status) {}),
        client.close([](std::uint64_t) {}),
        client.commit_nodes(),
    };
    for (status code : codes) {
        is_accepted |= code != status::invalid;
    }
    client.rethrow();
    return !is_accepted && client.stats_text().empty();
}

int main() {
    redlock::options options;
    options.on_exception = [](const std::exception_ptr &) {};
    redlock::client client = redlock::client::create(nullptr, options);
    redlock::lock lock;
#ifdef REDLOCK_COROUTINES_HPP
    redlock::task task =
        client.start(await_all(client, lock)); /* not started: there is no client */
#endif
    return is_refused(client, lock) ? 0 : 1;
}
