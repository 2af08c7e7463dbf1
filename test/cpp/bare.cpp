/*
 * redlock.hpp, and in C++20 its coroutines, and redlock/mutex.hpp, without exceptions and RTTI: all
 * of it compiles, and empty objects refuse calls.
 */
#include <redlock.hpp>
#include <redlock/mutex.hpp>
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

static bool is_refused(redlock::mutex &mutex) {
    redlock::error why;
    bool is_accepted = mutex.acquire(redlock::forever, &why) != status::invalid;
#if defined(__cpp_lib_jthread)
    is_accepted |= mutex.acquire(std::stop_token(), {}) != status::invalid;
#endif
    return !is_accepted && mutex.extend() == status::invalid && mutex.release() == status::invalid;
}

/* Would end the program: a failure cannot be thrown. */
static void lock_or_end(redlock::mutex &mutex) {
    std::lock_guard guard(mutex);
    if (mutex.try_lock() || mutex.try_lock_for(std::chrono::seconds(1))) {
        mutex.unlock();
    }
}

int main(int argc, char **) {
    redlock::options options;
    options.on_exception = [](const std::exception_ptr &) {};
    redlock::client client = redlock::client::create(nullptr, options);
    redlock::lock lock;
#ifdef REDLOCK_COROUTINES_HPP
    redlock::task task =
        client.start(await_all(client, lock)); /* not started: there is no client */
#endif
    redlock::error why;
    redlock::shared_client shared(options, why);
    redlock::mutex mutex(shared, "key");
    if (argc > 1) {
        lock_or_end(mutex);
    }
    return is_refused(client, lock) && !shared && is_refused(mutex) ? 0 : 1;
}
