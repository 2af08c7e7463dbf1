/*
 * redlock/coroutines.hpp: awaited results, coroutines that are destroyed while they wait,
 * tasks, and exceptions in them.
 */
#include "memory.h"
#include "world.h"

#include <memory>
#include <redlock/coroutines.hpp>
#include <stdexcept>

using redlock::status;
using namespace std::chrono_literals;

constexpr milliseconds LONG_TTL(LONG_TTL_MS);

/* Runs the loop until the task has ended. */
static void wait_done(fixture *f, const redlock::task &task) {
    wait_for(
        f, [&] { return task.done(); }, "the task has ended");
}

/* Runs the coroutine that `make` makes, and closes the client. */
template <class F> static void run_task(void **state, F make) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::task task = client.start(make(f, client));

    assert_false(task.done()); /* everything that these await needs the loop */
    wait_done(f, task);
    wait_closed(f, client);
}

/* ------------------------------------------------------------------------------------- results */

static redlock::task use_all(fixture *f, redlock::client &client) {
    const std::string key("a\0b", 3);
    assert_true(co_await client.ready(50min) == status::ok);
    assert_true(co_await client.ready(-1ms) == status::invalid);
    redlock::acquisition got =
        co_await client.acquire({.key = key, .ttl = LONG_TTL, .fenced = true});
    assert_true(got && got.code() == status::ok && !got.explain().empty());
    redlock::lock lock = *std::move(got);
    assert_true(lock.key() == key && lock.fence() > 0);
    assert_true(co_await lock.extend() == status::ok);
    assert_true(co_await lock.extend(50min) == status::ok);
    assert_true(co_await lock.extend(-1ms) == status::invalid);

    redlock::view view = co_await client.inspect(key);
    assert_true(view.code == status::ok && view.held && view.nodes.size() == 5);
    assert_true(co_await client.check_fence(key, lock.fence()) == status::ok);
    assert_true(co_await client.check_fence(key, lock.fence() - 1) == status::lost);

    redlock::acquisition refused = co_await client.acquire({.key = key, .ttl = -1s});
    assert_true(!refused && refused.code() == status::invalid);
    assert_true(refused.explain() == client.error());
    redlock::acquisition failed = co_await client.acquire({.key = key, .ttl = LONG_TTL});
    assert_true(!failed && failed.code() == status::held && !failed.report().empty());
    assert_true(failed.explain().find("not acquired") == 0);
    assert_true(co_await lock.release() == status::ok);
    assert_true(failed.explain() == message(status::held) && failed.report().empty());
    assert_true(!lock && co_await lock.release() == status::invalid);
    assert_true((co_await client.inspect("")).code == status::invalid);
    wait_released(f, "a"); /* no key of a shorter name was acquired */
}

static void each_call_can_be_awaited(void **state) {
    run_task(state, use_all);
}

static redlock::task use_several_at_once(fixture *, redlock::client &client) {
    auto one = client.acquire({.key = "one", .ttl = LONG_TTL});
    auto two = client.acquire({.key = "two", .ttl = LONG_TTL});
    redlock::acquisition second = co_await two;
    redlock::acquisition first = co_await one;
    assert_true(first->key() == "one" && second->key() == "two");
    auto release = first->release();
    auto other = second->release();
    assert_true(co_await other == status::ok && co_await release == status::ok);
}

static void requests_begin_before_they_are_awaited(void **state) {
    run_task(state, use_several_at_once);
}

static redlock::task drop_results(fixture *f, redlock::client &client) {
    { auto never = client.acquire({.key = KEY, .ttl = LONG_TTL}); }
    {
        auto replaced = client.acquire({.key = KEY, .ttl = LONG_TTL});
        replaced = client.acquire({.key = "other", .ttl = LONG_TTL});
        co_await client.inspect("other");
    } /* acquired by now, or canceled */
    wait_released(f, KEY);
    redlock::acquisition got = co_await client.acquire({.key = KEY, .ttl = LONG_TTL});
    auto unheard = got->release();
}

static void results_that_nobody_awaits_leave_nothing(void **state) {
    auto *f = static_cast<fixture *>(*state);
    run_task(state, drop_results);
    wait_released(f, KEY);
    wait_released(f, "other");
}

/* A result that came before it is awaited; the lock in it goes with it. */
static void a_lock_that_nobody_took_is_released(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    {
        auto result = client.acquire({.key = KEY, .ttl = LONG_TTL});
        wait_for(
            f, [&] { return result.await_ready(); }, "the result is there");
        wait_holders(f, KEY, 5);
    }
    wait_released(f, KEY);
    wait_closed(f, client);
}

static redlock::task await_twice(fixture *f, redlock::client &client) {
    auto from = client.acquire({.key = KEY, .ttl = LONG_TTL});
    auto result = std::move(from);
    assert_true((co_await from).code() == status::invalid);
    redlock::acquisition got = co_await result;
    redlock::acquisition none = co_await result;
    assert_true(got && none.code() == status::invalid);
    auto view = client.inspect(KEY);
    assert_true((co_await view).held && (co_await view).code == status::invalid);
    auto extended = got->extend();
    auto second = got->extend();
    auto refused = std::move(second);
    assert_true(co_await second == status::invalid && co_await refused == status::busy);
    assert_true(co_await extended == status::ok);
    redlock::lock taken = *std::move(got);
    assert_true(co_await got->release() == status::invalid);
    assert_true(co_await got->lost() == status::invalid);
    const redlock::acquisition whole = std::move(got);
    assert_true(whole && !got && got.code() == status::invalid);
    wait_holders(f, KEY, 5);
}

static void results_are_awaited_once(void **state) {
    run_task(state, await_twice);
    wait_released(static_cast<fixture *>(*state), KEY);
}

static redlock::task run_out_of_memory(fixture *, redlock::client &client) {
    redlock::acquisition got = co_await client.acquire({.key = KEY, .ttl = LONG_TTL});
    memory::is_refusing = true;
    const redlock::acquisition none = co_await client.acquire({.key = "other", .ttl = LONG_TTL});
    const status asked = (co_await client.inspect(KEY)).code;
    const status extended = co_await got->extend();
    const status released = co_await got->release();
    memory::is_refusing = false;
    assert_true(none.code() == status::no_memory && asked == status::no_memory);
    assert_true(extended == status::no_memory && released == status::no_memory);

    auto pending = client.inspect(KEY);
    memory::is_refusing = true;
    const redlock::view view = co_await pending;
    memory::is_refusing = false;
    assert_true(view.code == status::no_memory && view.nodes.empty());
}

static void no_memory_is_a_result(void **state) {
    run_task(state, run_out_of_memory);
    wait_released(static_cast<fixture *>(*state), KEY);
}

/* ---------------------------------------------------------------------------------- destruction */

static redlock::task hold_and_wait(redlock::client &client, bool &was_resumed) {
    redlock::acquisition held = co_await client.acquire({.key = "held", .ttl = LONG_TTL});
    redlock::acquisition never =
        co_await client.acquire({.key = KEY, .ttl = LONG_TTL, .wait = redlock::forever});
    was_resumed = true;
}

static void a_coroutine_that_is_destroyed_cancels(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::lock lock = get(f, client, request_of(KEY));
    bool was_resumed = false;
    {
        redlock::task task = client.start(hold_and_wait(client, was_resumed));
        wait_holders(f, "held", 5);
        run_turns(f, 5);
        assert_int_equal(client.stats().pending, 1);
    }
    wait_released(f, "held");
    assert_int_equal(client.stats().pending, 0);
    assert_int_equal(client.stats().canceled, 1);
    lock.reset();
    wait_released(f, KEY);
    assert_false(was_resumed);
    wait_closed(f, client);
}

enum class stop { acquire, extend, release, inspect, check, lost };

static redlock::task stop_at(redlock::client &client, stop where, bool &was_resumed) {
    if (where == stop::inspect) {
        co_await client.inspect(KEY);
    } else if (where == stop::check) {
        co_await client.check_fence(KEY, 1);
    } else {
        redlock::acquisition got = co_await client.acquire({.key = KEY, .ttl = LONG_TTL});
        if (where == stop::extend) {
            co_await got->extend();
        } else if (where == stop::release) {
            co_await got->release();
        } else if (where == stop::lost) {
            co_await got->lost();
        }
    }
    was_resumed = true;
}

static void a_coroutine_may_be_destroyed_wherever_it_waits(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);

    for (stop where :
         {stop::acquire, stop::extend, stop::release, stop::inspect, stop::check, stop::lost}) {
        bool needs_lock = where == stop::extend || where == stop::release || where == stop::lost;
        bool was_resumed = false;
        const std::uint64_t before = client.stats().acquired;
        redlock::task task = client.start(stop_at(client, where, was_resumed));
        wait_for(
            f, [&] { return !needs_lock || client.stats().acquired > before; }, "it waits");
        task = {};
        wait_released(f, KEY);
        run_turns(f, 10);
        assert_false(was_resumed);
    }
    wait_closed(f, client);
}

static void a_client_may_be_destroyed_while_coroutines_wait(void **state) {
    auto *f = static_cast<fixture *>(*state);

    for (stop where :
         {stop::acquire, stop::extend, stop::release, stop::inspect, stop::check, stop::lost}) {
        auto client = std::make_unique<redlock::client>(connected(f));
        bool needs_lock = where == stop::extend || where == stop::release || where == stop::lost;
        bool was_resumed = false;
        redlock::task task = client->start(stop_at(*client, where, was_resumed));
        wait_for(
            f, [&] { return !needs_lock || client->stats().acquired > 0; }, "it waits");
        client.reset();
        assert_false(was_resumed);
        wait_done(f, task);
        assert_true(was_resumed);
        wait_released(f, KEY);
    }
}

static redlock::task destroy(std::unique_ptr<redlock::client> &client,
                             std::vector<status> &reported) {
    redlock::acquisition got = co_await client->acquire({.key = KEY, .ttl = LONG_TTL});
    redlock::lock lock = *std::move(got);
    auto pending = client->inspect(KEY);
    auto release = lock.release();
    client.reset();
    reported.push_back(co_await release);
    reported.push_back((co_await pending).code);
    reported.push_back(co_await lock.extend());
    reported.push_back(co_await lock.lost());
}

static void a_coroutine_may_destroy_its_client(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    std::vector<status> reported;
    redlock::task task = client->start(destroy(client, reported));

    wait_done(f, task);
    assert_true(
        (reported == std::vector{status::ok, status::closed, status::invalid, status::invalid}));
    wait_released(f, KEY);
}

/* --------------------------------------------------------------------------------------- losses */

static redlock::task watch(const redlock::lock &lock, std::vector<status> &reported) {
    reported.push_back(co_await lock.lost());
}

static void a_loss_can_be_awaited(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::lock lock = get(f, client, request_of(KEY));
    std::vector<status> reported;
    redlock::task tasks[] = {client.start(watch(lock, reported)),
                             client.start(watch(lock, reported)),
                             client.start(watch(lock, reported))};

    tasks[1] = {}; /* in the middle of the list */
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_true(lock.extend({}, [](status) {}) == status::ok);
    wait_done(f, tasks[0]);
    wait_done(f, tasks[2]);
    redlock::task late = client.start(watch(lock, reported));
    assert_true(late.done());
    assert_true((reported == std::vector{status::lost, status::lost, status::lost}));
    wait_closed(f, client);
}

static void a_release_ends_the_waiting_for_a_loss(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    std::vector<status> reported;

    for (bool is_reported : {false, true}) {
        redlock::lock lock = get(f, client, request_of(KEY));
        redlock::task task = client.start(watch(lock, reported));
        if (is_reported) {
            assert_true(lock.release([](status) {}) == status::ok);
        } else {
            lock.reset();
        }
        assert_false(task.done());
        wait_done(f, task);
        wait_released(f, KEY);
    }
    redlock::lock lock = get(f, client, request_of(KEY));
    redlock::task task = client.start(watch(lock, reported));
    lock.detach();
    wait_closed(f, client);
    wait_done(f, task);
    assert_true((reported == std::vector{status::canceled, status::canceled, status::closed}));
}

static redlock::task await_loss(redlock::client &client, status &reported) {
    redlock::acquisition got = co_await client.acquire(
        {.key = KEY, .ttl = LONG_TTL}, redlock::on_lost{[&](status code) { reported = code; }});
    co_await got->lost();
}

static void an_awaited_request_may_have_a_callable_for_the_loss(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    status reported = status::ok;
    redlock::task task = client.start(await_loss(client, reported));

    wait_for(
        f, [&] { return client.stats().held == 1; }, "the lock is held");
    wait_closed(f, client);
    assert_true(task.done() && reported == status::closed);
}

/* ---------------------------------------------------------------------------------- exceptions */

static redlock::task fail_late(redlock::client &client) {
    redlock::acquisition got = co_await client.acquire({.key = KEY, .ttl = LONG_TTL});
    throw std::runtime_error("late");
}

static redlock::task fail_at_once(redlock::client &client) {
    if (client) {
        throw std::runtime_error("at once");
    }
    co_return;
}

static void an_exception_of_a_task_goes_where_those_of_callables_go(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    std::vector<std::string> caught;

    try {
        client.start(fail_at_once(client)).detach();
    } catch (const std::runtime_error &error) {
        caught.emplace_back(error.what());
    }
    for (bool is_detached : {true, false}) {
        redlock::task task = client.start(fail_late(client));
        if (is_detached) {
            task.detach();
        }
        caught.push_back(text_of(thrown_in_loop(f, client)));
        assert_true(task.done());
        wait_released(f, KEY);
    }
    assert_true((caught == std::vector<std::string>{"at once", "late", "late"}));
    wait_closed(f, client);
}

/* ----------------------------------------------------------------------------- tasks and others */

static redlock::task count_end(redlock::client &client, int &count) {
    struct at_end {
        int &count;
        ~at_end() {
            count++;
        }
    } guard{count};
    redlock::acquisition got = co_await client.acquire({.key = KEY, .ttl = LONG_TTL});
    co_await got->release();
}

static void tasks_are_owned_or_detached(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::client empty;
    int ends = 0;

    client.start(count_end(client, ends)).detach();
    wait_for(
        f, [&] { return ends == 1; }, "the detached task has ended");
    count_end(client, ends).detach();
    redlock::task unborn = empty.start(count_end(client, ends));
    assert_false(unborn.done());
    redlock::task task = client.start(std::move(unborn));
    assert_true(unborn.done());
    task = client.start(std::move(task)); /* a second time: nothing happens */
    wait_done(f, task);
    assert_int_equal(ends, 2);
    task.detach();
    assert_true(task.done());
    wait_closed(f, client);
}

/* A foreign type of coroutine. */
struct foreign {
    struct promise_type {
        foreign get_return_object() {
            return {};
        }
        std::suspend_never initial_suspend() {
            return {};
        }
        std::suspend_never final_suspend() noexcept {
            return {};
        }
        void return_void() {
        }
        void unhandled_exception() {
        }
    };
};

static foreign use_foreign(redlock::client &client, status &reported) {
    redlock::acquisition got = co_await client.acquire({.key = KEY, .ttl = LONG_TTL});
    reported = co_await got->release();
}

static void other_types_of_coroutines_await_too(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    status reported = status::busy;

    use_foreign(client, reported);
    wait_for(
        f, [&] { return reported == status::ok; }, "the coroutine has ended");
    wait_closed(f, client);
}

int main() {
    const CMUnitTest tests[] = {
        IN_WORLD(each_call_can_be_awaited),
        IN_WORLD(requests_begin_before_they_are_awaited),
        IN_WORLD(results_that_nobody_awaits_leave_nothing),
        IN_WORLD(results_are_awaited_once),
        IN_WORLD(no_memory_is_a_result),
        IN_WORLD(a_lock_that_nobody_took_is_released),
        IN_WORLD(a_coroutine_that_is_destroyed_cancels),
        IN_WORLD(a_coroutine_may_be_destroyed_wherever_it_waits),
        IN_WORLD(a_client_may_be_destroyed_while_coroutines_wait),
        IN_WORLD(a_coroutine_may_destroy_its_client),
        IN_WORLD(a_loss_can_be_awaited),
        IN_WORLD(a_release_ends_the_waiting_for_a_loss),
        IN_WORLD(an_awaited_request_may_have_a_callable_for_the_loss),
        IN_WORLD(an_exception_of_a_task_goes_where_those_of_callables_go),
        IN_WORLD(tasks_are_owned_or_detached),
        IN_WORLD(other_types_of_coroutines_await_too),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
