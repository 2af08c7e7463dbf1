/*
 * redlock.hpp without coroutines: each call of the library, ownership, and what a callable may do:
 * throw, and destroy everything around it.
 */
#include "memory.h"
#include "world.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

using redlock::status;

/* -------------------------------------------------------------------------------- what compiles */

template <class T> constexpr bool is_duration = std::is_convertible_v<T, redlock::duration>;
static_assert(is_duration<std::chrono::milliseconds> && is_duration<std::chrono::seconds>);
static_assert(is_duration<std::chrono::duration<std::uint32_t, std::ratio<86400>>>);
static_assert(!is_duration<std::chrono::microseconds> && !is_duration<std::chrono::nanoseconds>);
static_assert(!is_duration<std::chrono::duration<double>> && !is_duration<int>);
static_assert(!is_duration<std::chrono::duration<int, std::ratio<3, 2000>>>);
static_assert(!std::is_constructible_v<redlock::duration, int>);
static_assert(!std::is_assignable_v<decltype((redlock::request::ttl)), std::uint64_t>);

static_assert(redlock::duration(std::chrono::hours(1)).ms() == 3600000);
static_assert(redlock::duration(std::chrono::hours::max()).ms() == UINT64_MAX);
static_assert(redlock::duration(std::chrono::milliseconds::max()).ms() == INT64_MAX);
static_assert(redlock::duration(std::chrono::seconds(-1)).is_negative());
static_assert(redlock::duration(std::chrono::hours::min()).is_negative());
static_assert(redlock::forever.ms() == REDLOCK_FOREVER);

template <class T>
constexpr bool is_moved_only =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>;
static_assert(is_moved_only<redlock::client> && is_moved_only<redlock::lock>);
static_assert(!std::is_copy_constructible_v<redlock::outcome>);

/*
 * A status that this header lacks does not compile here; one that redlock.h lacks does not compile
 * there.
 */
constexpr int number_of_statuses() {
    int count = 0;
#define COUNT(name, value, text) count++;
    REDLOCK_STATUS_MAP(COUNT)
#undef COUNT
    return count;
}
static_assert(number_of_statuses() == 1 - static_cast<int>(status::no_access));

/* ------------------------------------------------------------------------------------- memory */

static void a_request_takes_one_allocation(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    options.log = nullptr;
    redlock::client client = connected(f, options);
    const redlock::request request = request_of(KEY);
    redlock::lock lock;
    char ballast[200] = "";
    bool is_lost = false;

    std::size_t before = memory::allocations;
    redlock::attempt attempt = client.acquire(
        request,
        [&lock, ballast](redlock::acquisition result) {
            (void)ballast;
            lock = *std::move(result);
        },
        redlock::on_lost{[&is_lost, ballast](status) { is_lost = ballast[0] == '\0'; }});
    assert_true(attempt);
    wait_for(
        f, [&] { return bool(lock); }, "the lock is held");
    assert_int_equal(memory::allocations - before, 1);
    lock.reset();
    assert_int_equal(memory::allocations - before, 1);
    wait_released(f, KEY);
    wait_closed(f, client);
}

static void no_memory_is_a_refusal(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    const redlock::request request = request_of(KEY);
    redlock::lock lock = get(f, client, request);
    redlock::lock other = get(f, client, request_of("other"));

    memory::is_refusing = true;
    redlock::attempt attempt = client.acquire(request, [](redlock::acquisition) { std::abort(); });
    status asked = client.inspect(KEY, [](redlock::view) { std::abort(); });
    status extended = lock.extend({}, [](status) { std::abort(); });
    status released = lock.release([](status) { std::abort(); });
    bool names_memory = std::string_view(client.error()) == "out of memory";
    memory::is_refusing = false;
    assert_true(attempt.code() == status::no_memory && asked == status::no_memory);
    assert_true(extended == status::no_memory && released == status::no_memory);
    assert_true(names_memory);
    assert_false(lock);
    wait_released(f, KEY);
    assert_true(bool(other));
    wait_closed(f, client);
}

/* A view that is empty for lack of memory must not read as that of a free key. */
static void a_view_that_cannot_be_copied_is_no_view(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::lock lock = get(f, client, request_of(KEY));
    std::optional<status> code;
    bool is_empty = false;

    wait_holders(f, KEY, 5);
    assert_true(client.inspect(KEY, [&](const redlock::view &found) {
        memory::is_refusing = false;
        code = found.code;
        is_empty = !found.held && found.nodes.empty();
    }) == status::ok);
    memory::is_refusing = true;
    wait_for(
        f, [&] { return code.has_value(); }, "the key is inspected");
    assert_true(code == status::no_memory && is_empty);
    client.rethrow(); /* nothing: the code says it */
    lock.reset();
    wait_closed(f, client);
}

/* ------------------------------------------------------------------------------------- handles */

static void a_lock_is_released_with_its_handle(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    {
        redlock::lock lock = get(f, client, request_of(KEY));
        assert_true(lock.validity() > milliseconds(LONG_TTL_MS / 2));
        assert_true(lock.key() == KEY && lock.key(1).data() == nullptr);
        assert_true(lock.explain().find("acquired") != std::string::npos);
        assert_int_equal(lock.report().size(), 5);
        wait_holders(f, KEY, 5);
    }
    wait_released(f, KEY);
    {
        redlock::lock one = get(f, client, request_of(KEY));
        one = get(f, client, request_of("other"));
        wait_released(f, KEY);
        redlock::lock &same = one;
        one = std::move(same);
        assert_true(one.key() == "other");
        one.reset();
        one.reset();
    }
    wait_released(f, "other");
    wait_closed(f, client);
}

static void a_release_reports_its_result(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::lock lock = get(f, client, request_of(KEY));
    std::string why;
    status code = status::invalid;

    assert_true(lock.release([&](const redlock::outcome &result) {
        code = result.code();
        why = result.explain();
        assert_int_equal(result.report().size(), 5);
    }) == status::ok);
    assert_false(lock);
    assert_true(lock.release([](status) { std::abort(); }) == status::invalid);
    wait_for(
        f, [&] { return !why.empty(); }, "the release is reported");
    assert_true(code == status::ok);
    lock = get(f, client, request_of(KEY));
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_true(lock.release([&](status reported) { code = reported; }) == status::ok);
    wait_for(
        f, [&] { return code != status::ok; }, "the second release is reported");
    assert_true(code == status::lost);
    wait_closed(f, client);
}

static void a_detached_lock_is_held_until_the_client_closes(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    status reported = status::ok;

    get(f, client, request_of(KEY), nullptr,
        redlock::on_lost{[&](status code) { reported = code; }})
        .detach();
    run_turns(f, 10);
    wait_holders(f, KEY, 5);
    wait_closed(f, client);
    assert_true(reported == status::closed);
    wait_released(f, KEY);
}

static void keys_are_any_bytes(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    const std::string text("a\0b\xff#", 5);
    redlock::lock lock = get(f, client, request_of(std::string_view(text).substr(0, 4)));

    assert_true(lock.key() == std::string_view(text).substr(0, 4));
    wait_for(
        f,
        [&] {
            return masters_query_integer(f->masters, 0, "EXISTS %b", text.data(), std::size_t{4});
        },
        "the key is there");
    assert_true(client.acquire(request_of({}), [](redlock::acquisition) {}).code() ==
                status::invalid);
    assert_true(std::string_view(client.error()).find("key") != std::string_view::npos);
    lock.reset();
    wait_closed(f, client);
}

static void several_keys_make_one_lock(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::request request = request_of({});
    status code;

    request.keys = {"one", std::string_view("two#").substr(0, 3)};
    redlock::lock lock = get(f, client, request);
    assert_true(lock.key() == "one" && lock.key(1) == "two" && lock.key(2).data() == nullptr);
    get(f, client, request_of("two"), &code);
    assert_true(code == status::held);
    request.keys = {"one", ""};
    assert_true(client.acquire(request, [](redlock::acquisition) {}).code() == status::invalid);
    request.keys.assign(REDLOCK_MAX_KEYS + 1, "one");
    assert_true(client.acquire(request, [](redlock::acquisition) {}).code() == status::invalid);
    assert_true(std::string_view(client.error()).substr(0, 5) == "keys:");
    lock.reset();
    wait_released(f, "one");
    wait_closed(f, client);
}

static void permits_and_modes(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::request request = request_of("pool");
    status code;

    request.permits = 2;
    redlock::lock one = get(f, client, request);
    redlock::lock two = get(f, client, request);
    assert_true(one.key() != two.key() && one.key().substr(0, 5) == "pool:");
    get(f, client, request, &code);
    assert_true(code == status::held);

    request = request_of(KEY);
    request.mode = redlock::mode::reader;
    redlock::lock reader = get(f, client, request);
    redlock::lock other = get(f, client, request);
    request.mode = redlock::mode::writer;
    get(f, client, request, &code);
    assert_true(code == status::held);
    reader.reset();
    other.reset();
    request.wait = redlock::forever;
    redlock::lock writer = get(f, client, request);
    wait_closed(f, client);
}

static void fences_grow_and_are_checked(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::request request = request_of(KEY);
    redlock::gate gate;
    std::vector<status> reported;
    auto report = [&](status code) { reported.push_back(code); };

    request.fenced = true;
    redlock::lock lock = get(f, client, request);
    const std::uint64_t first = lock.fence();
    lock.reset();
    wait_released(f, KEY);
    lock = get(f, client, request);
    assert_true(lock.fence() > first);
    assert_true(gate.admit(lock.fence()) && !gate.admit(first) && gate.fence() == lock.fence());
    assert_true(client.check_fence(KEY, lock.fence(), report) == status::ok);
    wait_for(
        f, [&] { return reported.size() == 1; }, "the fence is checked");
    assert_true(client.check_fence(KEY, first, report) == status::ok);
    wait_for(
        f, [&] { return reported.size() == 2; }, "the old fence is checked");
    assert_true(reported[0] == status::ok && reported[1] == status::lost);
    wait_closed(f, client);
}

static void a_client_reports_when_it_is_ready(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = create(f, patient(f));
    std::vector<status> reported;
    auto report = [&](status code) { reported.push_back(code); };

    assert_true(client.ready({}, report) == status::ok);
    assert_true(reported.empty());
    assert_true(client.ready(redlock::forever, report) == status::ok);
    wait_for(
        f, [&] { return reported.size() == 2; }, "the client is ready");
    assert_true(reported[0] == status::no_quorum && reported[1] == status::ok);
    assert_true(client.ready(milliseconds(-1), report) == status::invalid);
    assert_string_equal(client.error(), "timeout: must not be negative");
    wait_closed(f, client);
    assert_true(client.ready({}, report) == status::closed && reported.size() == 2);
}

static void an_inspection_is_a_copy(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    options.owner = "tester";
    redlock::client client = connected(f, options);
    redlock::lock lock = get(f, client, request_of(KEY));
    redlock::view view;
    bool is_reported = false;

    wait_holders(f, KEY, 5);
    assert_true(client.inspect(KEY, [&](redlock::view found) {
        view = std::move(found);
        is_reported = true;
    }) == status::ok);
    wait_for(
        f, [&] { return is_reported; }, "the key is inspected");
    assert_true(view.code == status::ok && view.held && view.owner == "tester");
    assert_true(view.ttl > milliseconds(0) && view.nodes.size() == 5 && view.nodes[0].held);
    assert_true(view.nodes[0].node == masters_address(f->masters, 0));
    lock.reset();
    wait_closed(f, client);
}

static void a_request_can_be_canceled(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::lock lock = get(f, client, request_of(KEY));
    redlock::request request = request_of(KEY);
    status code = status::ok;
    std::string why;

    request.wait = redlock::forever;
    redlock::attempt attempt = client.acquire(request, [&](redlock::acquisition result) {
        code = result.code();
        why = result.explain();
        assert_false(result);
    });
    run_turns(f, 5);
    assert_false(attempt.explain().empty());
    assert_true(attempt.cancel() == status::ok);
    assert_true(code == status::ok);
    wait_for(
        f, [&] { return code != status::ok; }, "the request is canceled");
    assert_true(code == status::canceled && !why.empty());
    assert_true(attempt.cancel() == status::invalid && attempt.explain().empty());
    assert_true(redlock::attempt().cancel() == status::invalid);
    wait_closed(f, client);
}

static void a_lock_is_extended(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::request request = request_of(KEY);
    status code = status::invalid;

    request.ttl = std::chrono::minutes(10);
    redlock::lock lock = get(f, client, request);
    auto report = [&](status reported) { code = reported; };
    assert_true(lock.extend(std::chrono::seconds(-1), report) == status::invalid);
    assert_true(lock.extend(std::chrono::hours::max(), report) == status::invalid);
    assert_true(lock.extend(std::chrono::minutes(20), report) == status::ok);
    assert_true(lock.extend(std::chrono::minutes(20), report) == status::busy);
    assert_true(code == status::invalid);
    wait_for(
        f, [&] { return code != status::invalid; }, "the extension is reported");
    assert_true(code == status::ok && lock.validity() > std::chrono::minutes(15));
    lock.reset();
    wait_closed(f, client);
}

static void strings_with_a_nul_are_refused(void **state) {
    auto *f = static_cast<fixture *>(*state);
    const std::string cut("a\0b", 3);
    redlock::client client = connected(f);
    auto refused = [&](std::string redlock::options::*field) {
        redlock::options options = patient(f);
        redlock::error error;
        options.*field = cut;
        return !create(f, options, &error) && error.code == status::invalid &&
               error.message == "a string of the options has a NUL byte";
    };
    for (auto field : {&redlock::options::name, &redlock::options::owner,
                       &redlock::options::tls_ca_file, &redlock::options::tls_ca_path,
                       &redlock::options::tls_cert_file, &redlock::options::tls_key_file}) {
        assert_true(refused(field));
    }
    redlock::options options = patient(f);
    options.nodes[1] += cut;
    assert_false(create(f, options));
    assert_true(client.change_nodes(options.nodes) == status::invalid);
    assert_string_equal(client.error(), "nodes: a URI has a NUL byte");
    wait_closed(f, client);
}

static void durations_out_of_range_are_refused(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::request request = request_of(KEY);
    auto refused = [&] {
        return client.acquire(request, [](redlock::acquisition) {}).code() == status::invalid;
    };

    request.ttl = std::chrono::hours::max();
    assert_true(refused());
    request.ttl = std::chrono::seconds(-1);
    assert_true(refused());
    assert_string_equal(client.error(), "a duration of the request is negative");
    request = request_of(KEY);
    request.wait = std::chrono::milliseconds(-1);
    assert_true(refused());
    redlock::options options = patient(f);
    redlock::error error;
    options.max_ttl = std::chrono::seconds(-1);
    assert_false(create(f, options, &error));
    assert_true(error.code == status::invalid && !error.message.empty());
    assert_false(create(f, {}));
    assert_false(redlock::client::create(nullptr, patient(f), &error));
    assert_false(redlock::client::create_on(nullptr, patient(f), &error));
    assert_true(error.code == status::invalid && !error.message.empty());
    wait_closed(f, client);
}

static void a_loss_is_reported(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    status reported = status::ok;
    std::string why;
    redlock::lock lock = get(f, client, request_of(KEY), nullptr,
                             redlock::on_lost{[&](const redlock::outcome &loss) {
                                 reported = loss;
                                 why = loss.explain();
                             }});

    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_true(lock.extend({}, [](status) {}) == status::ok);
    wait_for(
        f, [&] { return reported != status::ok; }, "the loss is reported");
    assert_true(reported == status::lost && !why.empty());
    assert_true(lock && lock.validity() == milliseconds(0));
    assert_true(lock.extend({}, [](status) {}) == status::lost);
    wait_closed(f, client);
    assert_true(reported == status::lost);
}

static void statistics_nodes_and_trace(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    std::size_t events = 0;
    options.trace = [&](const redlock_event &event) { events += event.field_count > 0; };
    redlock::client client = connected(f, options);
    redlock::lock lock = get(f, client, request_of(KEY));

    assert_true(events > 0);
    const redlock_stats stats = client.stats();
    assert_int_equal(stats.acquired, 1);
    assert_int_equal(stats.held, 1);
    assert_true(redlock::quantile(stats.acquire, 0.5) > std::chrono::nanoseconds(0));
    assert_true(client.node_stats(4)->connected && !client.node_stats(5));
    assert_true(client.nodes().size() == 5 && client.nodes()[0].connected);
    assert_true(client.stats_text().find("redlock_") != std::string::npos);
    wait_closed(f, client);
    assert_true(client.nodes().empty() && client.stats_text().empty());
    assert_int_equal(client.stats().acquired, 0);
}

static void nodes_are_changed(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    const std::vector<std::string> all = options.nodes;
    options.nodes.resize(3);
    redlock::client client = connected(f, options);

    assert_true(client.commit_nodes() == status::invalid);
    assert_true(client.change_nodes({"nonsense"}) == status::invalid);
    assert_true(client.change_nodes(all) == status::ok);
    assert_int_equal(client.nodes().size(), 5);
    assert_true(client.commit_nodes() == status::busy);
    assert_true(client.abandon_nodes() == status::ok);
    assert_int_equal(client.nodes().size(), 3);
    wait_closed(f, client);
    assert_true(client.change_nodes(all) == status::closed);
}

static void statuses_are_error_codes(void **state) {
    (void)state;
    const std::error_code error = status::held;

    assert_true(error && !std::error_code(status::ok));
    assert_true(error.message() == redlock_strerror(REDLOCK_EHELD));
    assert_string_equal(error.category().name(), "redlock");
    assert_true(error == status::held && error != std::error_code(status::lost));
    assert_string_equal(name(status::held), "REDLOCK_EHELD");
    assert_true(is_retryable(status::held) && !is_retryable(status::lost));
    assert_string_equal(redlock::version(), redlock_version());
}

/* ----------------------------------------------------------------------------------- lifetimes */

static void a_lock_may_outlive_its_client(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    redlock::lock lock = get(f, *client, request_of(KEY));
    bool is_reported = false;
    redlock::lock other = get(f, *client, request_of("other"), nullptr,
                              redlock::on_lost{[&](status) { is_reported = true; }});
    redlock::lock lost = get(f, *client, request_of("lost"));

    wait_holders(f, "lost", 5);
    rival_frees(f, 0, 5, "lost");
    status reported = status::ok;
    assert_true(lost.extend({}, [&](status code) { reported = code; }) == status::ok);
    wait_for(
        f, [&] { return reported == status::lost; }, "a lock is lost");
    client.reset();
    assert_false(lock);
    other.reset();
    assert_true(lock.extend({}, [](status) { std::abort(); }) == status::closed);
    wait_released(f, KEY);
    assert_true(lock.validity() == milliseconds(0) && lock.fence() == 0 && lock.key().empty());
    assert_true(lock.release([&](status code) { reported = code; }) == status::ok);
    wait_for(
        f, [&] { return reported == status::ok; }, "the release is reported");
    assert_true(lost.report().empty());
    wait_released(f, "other");
    assert_false(is_reported); /* a handle that was reset is not notified */
}

/*
 * The close reports two losses in one turn: the first callback resets both handles, its own
 * included.
 */
static void a_loss_may_reset_all_handles(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    redlock::lock locks[2];
    int reported = 0;
    auto report = [&](status code) {
        assert_true(code == status::closed);
        reported++;
        for (redlock::lock &lock : locks) {
            lock.reset();
        }
    };

    locks[0] = get(f, *client, request_of(KEY), nullptr, redlock::on_lost{report});
    locks[1] = get(f, *client, request_of("other"), nullptr, redlock::on_lost{report});
    client.reset();
    wait_for(
        f, [&] { return reported > 0; }, "a loss is reported");
    wait_released(f, KEY);
    wait_released(f, "other");
    assert_int_equal(reported, 1); /* a handle that was reset is not notified */
}

/* The holder releases its lock during the close, so that its on_lost is not called. */
static void a_lock_is_released_while_its_client_closes(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    redlock::on_lost never{[](status) { std::abort(); }};
    redlock::lock lock = get(f, client, request_of(KEY), nullptr, never);
    redlock::lock other = get(f, client, request_of("other"), nullptr, never);
    status reported = status::invalid;
    bool is_closed = false;

    assert_true(client.close([&](std::uint64_t unreleased) {
        assert_int_equal(unreleased, 0);
        assert_true(reported == status::ok);
        is_closed = true;
    }) == status::ok);
    assert_true(lock.release([&](status code) { reported = code; }) == status::ok);
    other.reset();
    wait_for(
        f, [&] { return is_closed; }, "the client is closed");
    assert_true(lock.release([](status) { std::abort(); }) == status::invalid);
    assert_int_equal(holders(f, KEY), 0);
    assert_int_equal(holders(f, "other"), 0);
}

static void a_client_may_be_destroyed_at_any_time(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    std::vector<status> reported;
    status lost = status::ok;
    auto report = [&](status code) { reported.push_back(code); };
    redlock::lock lock = get(f, *client, request_of(KEY), nullptr,
                             redlock::on_lost{[&](status code) { lost = code; }});
    redlock::lock released = get(f, *client, request_of("other"));

    redlock::attempt attempt = client->acquire(
        request_of(KEY), [&](redlock::acquisition result) { report(result.code()); });
    assert_true(client->inspect(KEY, [&](redlock::view found) { report(found.code); }) ==
                status::ok);
    assert_true(client->check_fence(KEY, 1, report) == status::ok);
    assert_true(lock.extend({}, report) == status::ok);
    assert_true(released.release(report) == status::ok);
    client.reset();
    assert_true(reported.empty());
    assert_true(attempt.cancel() == status::ok);
    assert_true(attempt.cancel() == status::invalid);
    wait_for(
        f, [&] { return reported.size() == 5; }, "each request has ended");
    assert_int_equal(std::count(reported.begin(), reported.end(), status::canceled), 1);
    assert_true(lost == status::closed);
    wait_released(f, KEY);
    assert_int_equal(reported.size(), 5);
}

static void callables_destroy_what_is_around_them(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    auto lock = std::make_unique<redlock::lock>();
    auto attempt = std::make_unique<redlock::attempt>();
    bool is_lost = false;

    /* The attempt, in its own callable; the lock, in its own on_lost. */
    *attempt = client->acquire(
        request_of(KEY),
        [&](redlock::acquisition result) {
            *lock = *std::move(result);
            attempt.reset();
        },
        redlock::on_lost{[&](const redlock::outcome &loss) {
            lock.reset();
            is_lost = loss.code() == status::lost && !loss.explain().empty();
        }});
    wait_for(
        f, [&] { return *lock && attempt == nullptr; }, "the lock is held");
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_true(lock->extend({}, [](status) {}) == status::ok);
    wait_for(
        f, [&] { return is_lost; }, "the lock is lost");
    assert_null(lock.get());

    /* The client, in the callable of an acquisition, with the lock still in the result. */
    std::vector<status> reported;
    assert_true(bool(client->acquire(request_of(KEY), [&](redlock::acquisition result) {
        reported.push_back(result.code());
        client.reset();
        assert_false(*result);
        assert_true(result->validity() == milliseconds(0));
    })));
    wait_for(
        f, [&] { return client == nullptr; }, "the client is destroyed");
    assert_true(reported == std::vector<status>{status::ok});
    wait_released(f, KEY);
}

static void a_client_ends_in_the_callable_of_a_loss(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    redlock::lock lock;

    lock = get(f, *client, request_of(KEY), nullptr, redlock::on_lost{[&](status) {
                   client.reset();
                   lock.reset();
               }});
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 3, KEY);
    assert_true(lock.extend({}, [](status) {}) == status::ok);
    wait_for(
        f, [&] { return client == nullptr; }, "the client is destroyed");
    wait_released(f, KEY);
}

static void callables_are_destroyed_when_they_were_called(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    auto token = std::make_shared<int>();
    redlock::lock lock;

    assert_true(bool(client.acquire(
        request_of(KEY), [&, token](redlock::acquisition result) { lock = *std::move(result); },
        redlock::on_lost{[token](status) {}})));
    assert_int_equal(token.use_count(), 3);
    wait_for(
        f, [&] { return bool(lock); }, "the lock is held");
    assert_int_equal(token.use_count(), 2);
    lock.reset();
    assert_int_equal(token.use_count(), 1);
    assert_false(bool(client.acquire(request_of(""), [token](redlock::acquisition) {})));
    assert_int_equal(token.use_count(), 1);
    wait_closed(f, client);
}

/* The attempt of the request, however, lives on. */
static void the_callable_of_a_loss_goes_when_none_can_be_reported(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);
    auto token = std::make_shared<int>();
    std::vector<redlock::attempt> attempts;
    redlock::lock lock;
    status reported = status::busy;
    auto acquire = [&] {
        reported = status::busy;
        attempts.push_back(client.acquire(
            request_of(KEY),
            [&](redlock::acquisition result) {
                reported = result.code();
                lock = *std::move(result);
            },
            redlock::on_lost{[&reported, token](status code) {
                assert_int_equal(token.use_count(), 2); /* lives while it runs */
                reported = code;
            }}));
        wait_for(
            f, [&] { return reported != status::busy; }, "the result is reported");
    };

    acquire();
    assert_true(reported == status::ok);
    assert_int_equal(token.use_count(), 2);
    lock.reset();
    assert_int_equal(token.use_count(), 1);
    wait_released(f, KEY);

    acquire();
    assert_true(lock.release([](status) {}) == status::ok);
    assert_int_equal(token.use_count(), 1);
    wait_released(f, KEY);

    redlock::lock other = get(f, client, request_of(KEY));
    acquire();
    assert_true(reported == status::held);
    assert_int_equal(token.use_count(), 1);
    other.reset();
    wait_released(f, KEY);

    acquire();
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_true(lock.extend({}, [](status) {}) == status::ok);
    wait_for(
        f, [&] { return reported == status::lost; }, "the loss is reported");
    assert_int_equal(token.use_count(), 1);
    lock.reset();

    acquire();
    lock.detach();
    wait_closed(f, client);
    assert_true(reported == status::closed);
    assert_int_equal(token.use_count(), 1);
    assert_int_equal(attempts.size(), 5);
}

/* An object that owns everything of a lock, and is owned only by the callable of its loss. */
static void the_callable_of_a_loss_may_own_the_handles(void **state) {
    auto *f = static_cast<fixture *>(*state);
    struct holder {
        redlock::lock lock{};
        redlock::attempt attempt{};
    };
    enum class end { reset, release, assignment, loss, close };

    for (end how : {end::reset, end::release, end::assignment, end::loss, end::close}) {
        redlock::client client = connected(f);
        auto owner = std::make_shared<holder>();
        std::weak_ptr<holder> life = owner;
        bool is_reported = false;

        owner->attempt = client.acquire(
            request_of(KEY), [self = owner.get()](auto got) { self->lock = *std::move(got); },
            redlock::on_lost{[owner, &is_reported](status) {
                owner->lock.reset();
                owner->attempt = {};
                is_reported = true;
            }});
        wait_for(
            f, [&] { return bool(owner->lock); }, "the lock is held");
        wait_holders(f, KEY, 5);
        holder *self = owner.get();
        owner.reset();
        if (how == end::reset) {
            self->lock.reset();
        } else if (how == end::release) {
            assert_true(self->lock.release([](status) {}) == status::ok);
        } else if (how == end::assignment) {
            self->lock = {};
        } else if (how == end::loss) {
            rival_frees(f, 0, 5, KEY);
            assert_true(self->lock.extend({}, [](status) {}) == status::ok);
            wait_for(
                f, [&] { return is_reported; }, "the loss is reported");
        }
        assert_true(life.expired() == (how != end::close));
        wait_closed(f, client);
        assert_true(life.expired());
        assert_true(is_reported == (how == end::loss || how == end::close));
        wait_released(f, KEY);
    }
}

static void what_was_moved_from_is_empty(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client from = connected(f);
    redlock::lock lock = get(f, from, request_of(KEY));
    redlock::client client = std::move(from);
    redlock::lock held = std::move(lock);

    redlock::attempt begun = client.acquire(request_of("other"), [](redlock::acquisition) {});
    redlock::attempt attempt = std::move(begun);
    redlock::acquisition refused(status::held, "a reason");
    redlock::acquisition moved = std::move(refused);

    // NOLINTBEGIN(bugprone-use-after-move): that is the test.
    assert_false(begun);
    assert_true(begun.code() == status::invalid && begun.cancel() == status::invalid);
    assert_true(begun.explain().empty() && begun.report().empty());
    assert_true(refused.code() == status::invalid && refused.explain() == message(status::invalid));
    begun = std::move(attempt);
    assert_true(begun && !attempt);
    refused = std::move(moved);
    assert_true(refused.explain() == "a reason" && moved.code() == status::invalid);
    assert_false(from);
    assert_true(from.acquire(request_of(KEY), [](redlock::acquisition) {}).code() ==
                status::invalid);
    assert_true(from.inspect(KEY, [](redlock::view) {}) == status::invalid);
    assert_true(from.check_fence(KEY, 1, [](status) {}) == status::invalid);
    assert_true(from.ready(milliseconds(-1), [](status) {}) == status::invalid);
    assert_true(from.close([](std::uint64_t) {}) == status::invalid);
    assert_true(from.change_nodes({}) == status::invalid);
    assert_true(from.nodes().empty() && from.native() == nullptr && !from.node_stats(0));
    assert_string_equal(from.error(), "the client is empty");
    from.close();
    from.rethrow();
    assert_false(lock);
    lock.reset();
    lock.detach();
    assert_true(lock.release([](status) {}) == status::invalid);
    assert_true(lock.extend({}, [](status) {}) == status::invalid);
    assert_true(lock.validity() == milliseconds(0) && lock.key().empty());
    assert_true(lock.explain().empty() || lock.report().empty());
    // NOLINTEND
    assert_true(held.validity() > milliseconds(0));
    from = std::move(client);
    wait_closed(f, from);
    assert_true(from.close([](std::uint64_t) { std::abort(); }) == status::closed);
}

static void close_reports_what_is_left(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    options.close_timeout = milliseconds(100);
    redlock::client client = connected(f, options);
    redlock::lock lock = get(f, client, request_of(KEY));
    std::uint64_t left = 0;

    wait_holders(f, KEY, 5);
    kill_masters(f, 0, 2);
    assert_true(client.close([&](std::uint64_t unreleased) { left = unreleased; }) == status::ok);
    assert_false(client);
    wait_for(
        f, [&] { return left > 0; }, "the client is closed");
    assert_int_equal(left, 2);
}

/* ---------------------------------------------------------------------------------- exceptions */

static void the_handler_gets_all_exceptions(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    std::vector<std::string> caught;
    bool is_hooked = false;
    options.on_exception = [&](std::exception_ptr exception) {
        caught.push_back(text_of(exception));
    };
    options.trace = [&](const redlock_event &) {
        if (!std::exchange(is_hooked, true)) {
            throw std::runtime_error("trace");
        }
    };
    redlock::client client = connected(f, options);
    auto waits_for = [&](std::size_t count) {
        wait_for(
            f, [&] { return caught.size() >= count; }, "an exception is handed over");
    };

    waits_for(1);
    assert_true(bool(client.acquire(
        request_of(KEY), [](redlock::acquisition) { throw std::runtime_error("acquired"); })));
    waits_for(2);
    wait_released(f, KEY); /* the lock was in the result */
    redlock::lock lock = get(f, client, request_of(KEY), nullptr,
                             redlock::on_lost{[](status) { throw std::runtime_error("lost"); }});
    assert_true(lock.extend({}, [](status) { throw std::runtime_error("extended"); }) ==
                status::ok);
    waits_for(3);
    assert_true(client.inspect(KEY, [](redlock::view) { throw std::runtime_error("view"); }) ==
                status::ok);
    waits_for(4);
    assert_true(client.check_fence(KEY, 1, [](status) { throw 1; }) == status::ok);
    waits_for(5);
    redlock::lock other = get(f, client, request_of("other"));
    assert_true(other.release([](status) { throw std::runtime_error("released"); }) == status::ok);
    waits_for(6);
    assert_true(client.close([](std::uint64_t) { throw std::runtime_error("closed"); }) ==
                status::ok);
    waits_for(8);
    const std::vector<std::string> all = {"trace",   "acquired", "extended", "view",
                                          "unknown", "released", "lost",     "closed"};
    assert_true(caught == all);
}

static void an_exception_is_thrown_where_the_loop_was_run(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::client client = connected(f);

    assert_true(bool(client.acquire(
        request_of(KEY), [](redlock::acquisition) { throw std::runtime_error("acquired"); })));
    assert_true(text_of(thrown_in_loop(f, client)) == "acquired");
    client.rethrow();
    wait_released(f, KEY);
    redlock::lock lock = get(f, client, request_of(KEY));
    wait_closed(f, client);
}

static void an_exception_from_outside_of_the_loop_breaks_the_next(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    bool is_armed = false;
    bool is_called = false;
    options.trace = [&](const redlock_event &) {
        if (std::exchange(is_armed, false)) {
            throw std::runtime_error("trace");
        }
    };
    redlock::client client = connected(f, options);
    auto begin = [&] {
        is_armed = true;
        assert_true(bool(client.acquire(request_of(KEY), [&](redlock::acquisition) {
            is_called = true;
            throw std::runtime_error("acquired");
        })));
        assert_false(is_armed); /* the hook was called inside the call */
    };
    auto kept = [&] { return text_of(redlock::detail::caught([&] { client.rethrow(); })); };
    auto is_broken = [f] { return event_base_got_break(f->base); };

    /* Found at once: then only the callable itself breaks the loop. */
    begin();
    assert_true(kept() == "trace");
    run_turns(f, 1); /* this forgets a break from outside */
    wait_for(f, is_broken, "the loop is broken");
    assert_true(is_called && kept() == "acquired");
    wait_released(f, KEY);

    /* Not looked for: it breaks the loop, like the later ones, and is the one that is kept. */
    is_called = false;
    begin();
    run_turns(f, 1);
    wait_for(f, is_broken, "the loop is broken by what was kept");
    wait_for(
        f, [&] { return is_called; }, "the request has ended");
    assert_true(is_broken());
    assert_true(kept() == "trace");
    client.rethrow();
    wait_released(f, KEY);
    wait_closed(f, client);
}

/* As in a program without libevent. */
static void an_exception_ends_the_run_of_a_redlock_loop(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock_loop *loop = redlock_loop_pollable();
    redlock::client client = redlock::client::create_on(loop, patient(f));
    std::string caught;
    bool is_closed = false;

    assert_true(client.ready(redlock::forever, [&](status) {
        assert_true(bool(client.acquire(request_of(KEY), [](redlock::acquisition got) {
            throw std::runtime_error(message(got.code()));
        })));
    }) == status::ok);
    while (caught.empty()) {
        assert_int_equal(redlock_loop_run(loop, -1), 0);
        try {
            client.rethrow();
        } catch (const std::runtime_error &error) {
            caught = error.what();
        }
    }
    assert_true(caught == message(status::ok));
    assert_true(client.close([&](std::uint64_t) { is_closed = true; }) == status::ok);
    redlock_loop_free(loop); /* it ends with its client */
    while (!is_closed) {
        assert_int_equal(redlock_loop_run(loop, -1), 0);
    }
    wait_released(f, KEY);
}

/* Runs in a child, and asserts that std::terminate ends it. */
template <class F> static void assert_terminates(F act) {
    pid_t child = fork();
    int result = 0;

    if (child == 0) {
        std::set_terminate([] { _exit(42); });
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 42);
}

static void an_exception_that_nobody_takes_ends_the_program(void **state) {
    auto *f = static_cast<fixture *>(*state);
    auto client = std::make_unique<redlock::client>(connected(f));
    bool is_called = false;

    assert_true(bool(client->acquire(request_of(KEY), [&](redlock::acquisition) {
        is_called = true;
        throw std::runtime_error("acquired");
    })));
    wait_for(
        f, [&] { return is_called; }, "the exception is thrown");
    assert_terminates([&] { client.reset(); });
    try { /* not while another one is propagating */
        redlock::client dropped = std::move(*client);
        throw std::logic_error("another");
    } catch (const std::logic_error &) {
    }
    int breaks = 0;
    wait_for(
        f,
        [&] {
            breaks += event_base_got_break(f->base);
            return are_closed(f);
        },
        "the client is closed");
    /* that of libevent by the first one: what was dropped with the client breaks no loop */
    assert_int_equal(breaks, f->loop == nullptr);
    wait_released(f, KEY);
}

int main() {
    const CMUnitTest tests[] = {
        IN_WORLD(a_request_takes_one_allocation),
        IN_WORLD(no_memory_is_a_refusal),
        IN_WORLD(a_view_that_cannot_be_copied_is_no_view),
        IN_WORLD(a_lock_is_released_with_its_handle),
        IN_WORLD(a_release_reports_its_result),
        IN_WORLD(a_detached_lock_is_held_until_the_client_closes),
        IN_WORLD(keys_are_any_bytes),
        IN_WORLD(several_keys_make_one_lock),
        IN_WORLD(permits_and_modes),
        IN_WORLD(fences_grow_and_are_checked),
        IN_WORLD(a_client_reports_when_it_is_ready),
        IN_WORLD(an_inspection_is_a_copy),
        IN_WORLD(a_request_can_be_canceled),
        IN_WORLD(a_lock_is_extended),
        IN_WORLD(strings_with_a_nul_are_refused),
        IN_WORLD(durations_out_of_range_are_refused),
        IN_WORLD(a_loss_is_reported),
        IN_WORLD(statistics_nodes_and_trace),
        IN_WORLD(nodes_are_changed),
        cmocka_unit_test(statuses_are_error_codes),
        IN_WORLD(a_lock_may_outlive_its_client),
        IN_WORLD(a_loss_may_reset_all_handles),
        IN_WORLD(a_client_may_be_destroyed_at_any_time),
        IN_WORLD(callables_destroy_what_is_around_them),
        IN_WORLD(a_client_ends_in_the_callable_of_a_loss),
        IN_WORLD(callables_are_destroyed_when_they_were_called),
        IN_WORLD(the_callable_of_a_loss_goes_when_none_can_be_reported),
        IN_WORLD(the_callable_of_a_loss_may_own_the_handles),
        IN_WORLD(what_was_moved_from_is_empty),
        IN_WORLD(a_lock_is_released_while_its_client_closes),
        IN_WORLD(close_reports_what_is_left),
        IN_WORLD(the_handler_gets_all_exceptions),
        IN_WORLD(an_exception_is_thrown_where_the_loop_was_run),
        IN_WORLD(an_exception_that_nobody_takes_ends_the_program),
        IN_WORLD(an_exception_ends_the_run_of_a_redlock_loop),
        /* the last one: of libevent, where a break can be seen */
        IN_WORLD(an_exception_from_outside_of_the_loop_breaks_the_next),
    };
    const bool is_pollable = std::getenv("REDLOCK_TEST_LOOP") != nullptr;

    return _cmocka_run_group_tests("handles", tests, std::size(tests) - is_pollable, nullptr,
                                   nullptr);
}
