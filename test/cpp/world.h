/* The fixture of the integration tests (harness.h) for clients of redlock.hpp. */
#ifndef REDLOCK_TEST_WORLD_H
#define REDLOCK_TEST_WORLD_H

#include <event2/event.h>
#include <redlock.hpp>

extern "C" {
#include "harness.h"
#include "master_data.h"
}

/* The assertions also accept objects that convert explicitly to bool. */
#undef assert_true
#undef assert_false
#define assert_true(c) _assert_true(static_cast<bool>(c), #c, __FILE__, __LINE__)
#define assert_false(c) _assert_true(!static_cast<bool>(c), "!(" #c ")", __FILE__, __LINE__)

#define KEY "orders:42"

using std::chrono::milliseconds;

/* Turns the loop until the condition, a callable, holds. `what` as in run_until. */
template <class F> void wait_for(fixture *f, F condition, const char *what) {
    run_until(
        f, [](void *arg) { return static_cast<bool>((*static_cast<F *>(arg))()); }, &condition,
        what);
}

inline redlock::options patient(fixture *f) {
    redlock::options options;
    options.nodes.assign(masters_uris(f->masters),
                         masters_uris(f->masters) + masters_count(f->masters));
    options.node_timeout = milliseconds(PATIENT_MS);
    options.stall_timeout = milliseconds(4 * PATIENT_MS);
    options.max_ttl = milliseconds(LONG_TTL_MS);
    options.close_timeout = milliseconds(PATIENT_MS);
    options.guards = redlock::guards::off;
    options.retry_delay = milliseconds(5);
    options.retry_delay_max = milliseconds(40);
    options.reconnect_delay = milliseconds(5);
    options.reconnect_delay_max = milliseconds(40);
    options.log = [f](redlock::log_level level, std::string_view line) {
        log_capture_write(static_cast<redlock_log_level>(level), line.data(), &f->capture);
    };
    options.log_level = redlock::log_level::debug;
    options.allocator = &f->allocator.hook;
    return options;
}

/* Creates a client on the loop of the fixture. */
inline redlock::client create(fixture *f, const redlock::options &options,
                              redlock::error *error = nullptr) {
    return f->loop != nullptr ? redlock::client::create_on(f->loop, options, error)
                              : redlock::client::create(f->base, options, error);
}

inline redlock::client connected(fixture *f, const redlock::options &options) {
    redlock::error error;
    redlock::client client = create(f, options, &error);
    if (!client) {
        fail_msg("the options were refused: %s", error.message.c_str());
    }
    wait_connected(f, client.native(), options.nodes.size());
    return client;
}

inline redlock::client connected(fixture *f) {
    return connected(f, patient(f));
}

/* Closes the client, and waits until its callback has come. */
inline void wait_closed(fixture *f, redlock::client &client) {
    bool is_closed = false;
    assert_true(client.close([&](std::uint64_t) { is_closed = true; }) == redlock::status::ok);
    wait_for(
        f, [&] { return is_closed; }, "the client is closed");
}

/* Returns whether all clients have closed, also destroyed ones: the fixture's events are left. */
inline bool are_closed(fixture *f) {
    return f->allocator.blocks == 0 &&
           event_base_get_num_events(f->base, EVENT_BASE_COUNT_ADDED) == (f->loop != nullptr) + 1;
}

/* Ends the test as finish does, after destroyed clients have closed. */
inline int finish_closed(void **state) {
    auto *f = static_cast<fixture *>(*state);
    wait_for(
        f, [f] { return are_closed(f); }, "all clients are closed");
    return finish(state);
}

/* Runs the loop until an exception breaks it, and returns that. */
inline std::exception_ptr thrown_in_loop(fixture *f, redlock::client &client) {
    std::exception_ptr thrown;
    do {
        if (f->loop != nullptr) {
            assert_int_equal(redlock_loop_run(f->loop, -1), 0);
        } else {
            assert_int_equal(event_base_dispatch(f->base), 0); /* without a break it goes on */
            assert_true(event_base_got_break(f->base));
        }
        thrown = redlock::detail::caught([&client] { client.rethrow(); });
    } while (thrown == nullptr);
    return thrown;
}

inline std::string text_of(const std::exception_ptr &exception) {
    try {
        std::rethrow_exception(exception);
    } catch (const std::exception &caught) {
        return caught.what();
    } catch (...) {
        return "unknown";
    }
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, five_masters, finish_closed)

/* A request for one try, for a key that does not expire while the test waits. */
inline redlock::request request_of(std::string_view key) {
    redlock::request request;
    request.key = key;
    request.ttl = milliseconds(LONG_TTL_MS);
    return request;
}

/* Acquires, and returns the lock; after a failure, an empty one with *code. */
template <class L = redlock::detail::nothing>
redlock::lock get(fixture *f, redlock::client &client, const redlock::request &request,
                  redlock::status *code = nullptr, redlock::on_lost<L> loss = {}) {
    bool is_reported = false;
    redlock::status found = redlock::status::ok;
    redlock::lock lock;
    redlock::attempt attempt = client.acquire(
        request,
        [&](redlock::acquisition result) {
            is_reported = true;
            found = result.code();
            lock = *std::move(result);
        },
        std::move(loss));
    if (!attempt) {
        fail_msg("refused: %s", client.error());
    }
    assert_false(is_reported);
    wait_for(
        f, [&] { return is_reported; }, "the acquisition has ended");
    if (code != nullptr) {
        *code = found;
    } else if (found != redlock::status::ok) {
        fail_msg("not acquired: %s", message(found));
    }
    return lock;
}

#endif
