/*
 * redlock/mutex.hpp: mutexes as the standard library's guards use them, among threads, when their
 * locks are lost, and when their client closes. With -Db_sanitize=thread it searches for data
 * races.
 */
#include <redlock/mutex.hpp>

#include "world.h"

extern "C" {
#include "clocks.h"
}

#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

using redlock::status;

#define OTHER_KEY "orders:43"
#define THREADS 8
#define CHILDREN 100

static_assert(!std::is_copy_constructible_v<redlock::mutex> &&
              !std::is_move_constructible_v<redlock::mutex>);
static_assert(!std::is_copy_constructible_v<redlock::shared_client>);
static_assert(noexcept(std::declval<redlock::mutex &>().unlock()));

/* ------------------------------------------------------------------------------------ the world */

static redlock::options quiet(fixture *f) {
    redlock::options options = patient(f);
    options.log_level = redlock::log_level::warn;
    return options;
}

/* Returns the failure that a call throws; status::ok: none. */
template <class F> static std::error_code thrown_by(F call) {
    try {
        call();
    } catch (const std::system_error &caught) {
        return caught.code();
    }
    return status::ok;
}

/* A thread that locks a mutex and, once it may, unlocks it. The test joins it. */
class holder {
  public:
    template <class F>
    holder(redlock::mutex &mutex, F lock)
        : thread_([this, &mutex, lock] {
              code_ = thrown_by([&] { is_locked_ = lock(mutex); });
              has_ended_ = true;
              while (!may_unlock_) {
                  std::this_thread::yield();
              }
              if (is_locked_) {
                  code_ = mutex.release();
              }
          }) {
    }
    explicit holder(redlock::mutex &mutex)
        : holder(mutex, [](redlock::mutex &locked) {
              locked.lock();
              return true;
          }) {
    }
    ~holder() {
        end();
    }

    void cancel() {
        assert_int_equal(pthread_cancel(thread_.native_handle()), 0);
    }

    bool has_ended() const { /* the wait for the lock */
        return has_ended_;
    }

    /* Waits for the end of the wait; returns whether it is locked. */
    bool is_locked() const {
        while (!has_ended_) {
            std::this_thread::yield();
        }
        return is_locked_;
    }

    /* Unlocks; returns what was thrown, or else the status of the release. */
    std::error_code end() {
        may_unlock_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
        return code_;
    }

  private:
    std::atomic<bool> has_ended_ = false;
    std::atomic<bool> may_unlock_ = false;
    std::atomic<bool> is_locked_ = false;
    std::error_code code_{};
    std::thread thread_; /* the last field: it uses the others */
};

static void read_pending(redlock_client *client, void *arg) {
    redlock_stats stats{};
    stats.size = sizeof(stats);
    redlock_client_stats(client, &stats);
    *static_cast<std::uint64_t *>(arg) = stats.pending;
}

/* Waits until so many requests wait for a lock. */
static void wait_pending(const redlock::shared_client &client, std::uint64_t count) {
    std::uint64_t pending = count + 1;
    while (pending != count) {
        assert_int_equal(redlock_mt_run(client.native(), read_pending, &pending, nullptr),
                         REDLOCK_OK);
    }
}

/* Runs the client's loop until the masters have a value for the key other than `old`; returns it.
 */
static std::string wait_value(fixture *f, const redlock::shared_client &client,
                              const std::string &old) {
    std::string found = old;
    std::uint64_t pending;
    wait_for(
        f,
        [&] {
            const char *value = value_at(f, 0, KEY);
            found = value != nullptr ? value : old;
            return redlock_mt_run(client.native(), read_pending, &pending, nullptr) == REDLOCK_OK &&
                   found != old;
        },
        "the key is set");
    return found;
}

/* --------------------------------------------------------------------------------------- guards */

static void guards_of_the_standard_library_work(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    redlock::mutex first(client, KEY), second(client, OTHER_KEY);

    {
        std::lock_guard guard(first);
        wait_holders(f, KEY, 5);
        assert_true(first.state() == status::ok && first.validity().count() > 0);
        assert_true(first.key() == KEY && first.fence() == 0);
    }
    wait_released(f, KEY);
    assert_true(first.state() == status::invalid && first.validity().count() == 0);
    {
        std::unique_lock guard(first, std::defer_lock);
        assert_false(guard.owns_lock());
        assert_true(guard.try_lock());
        guard.unlock();
        assert_true(guard.try_lock_for(std::chrono::hours(1)));
        guard.unlock();
        assert_true(guard.try_lock_until(std::chrono::system_clock::now() + std::chrono::hours(1)));
    }
    wait_released(f, KEY);
    {
        std::scoped_lock both(first, second);
        wait_holders(f, KEY, 5);
        wait_holders(f, OTHER_KEY, 5);
    }
    wait_released(f, KEY);
    wait_released(f, OTHER_KEY);
    try {
        std::lock_guard guard(first);
        throw std::runtime_error("inside");
    } catch (const std::runtime_error &) {
    }
    wait_released(f, KEY);
    assert_int_equal(client.close(), 0);
}

static void a_mutex_has_the_terms_of_its_request(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    std::string name = "pool";
    redlock::request terms = request_of(name);
    terms.permits = 2;
    redlock::mutex permit(client, terms), other(client, terms), third(client, terms);
    terms = request_of({});
    terms.keys = {KEY, OTHER_KEY};
    terms.fenced = true;
    redlock::mutex several(client, terms);

    name = "gone"; /* mutexes have copies */
    permit.lock();
    other.lock();
    assert_false(third.try_lock());
    assert_true(permit.key().substr(0, 5) == "pool:" && permit.key() != other.key());
    assert_true(permit.release() == status::ok);
    several.lock();
    wait_holders(f, KEY, 5);
    wait_holders(f, OTHER_KEY, 5);
    const std::uint64_t fence = several.fence();
    assert_true(fence > 0);
    several.unlock();
    several.lock();
    assert_true(several.fence() > fence);
    assert_true(several.extend() == status::ok);
    assert_true(several.extend(milliseconds(LONG_TTL_MS)) == status::ok);
    assert_true(redlock_mt_validity_ms(several.native()) > LONG_TTL_MS / 2);
} /* locked mutexes are released */

static void a_lock_waits_as_long_as_it_may(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    redlock::mutex mutex(client, KEY);
    redlock::request terms = request_of(KEY);
    terms.wait = milliseconds(1);
    redlock::mutex hurried(client, terms);
    terms.wait = {};
    terms.retries = 1;
    redlock::mutex retrying(client, terms);
    redlock::error why;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_false(mutex.try_lock());
    assert_false(mutex.try_lock_for(milliseconds(-1)));
    assert_false(mutex.try_lock_for(std::chrono::duration<double, std::micro>(0.5)));
    assert_false(mutex.try_lock_until(std::chrono::steady_clock::now() - milliseconds(1)));
    assert_false(mutex.try_lock_until(std::chrono::steady_clock::now() + milliseconds(1)));
    assert_true(thrown_by([&] { hurried.lock(); }) == status::held);
    assert_true(thrown_by([&] { retrying.lock(); }) == status::held);
    assert_true(mutex.acquire({}, &why) == status::held && why.code == status::held);
    assert_true(why.message.find("held") != std::string::npos);
    assert_true(mutex.state() == status::invalid);

    holder waiting(mutex);
    wait_pending(client, 1);
    assert_false(waiting.has_ended());
    rival_frees(f, 0, 5, KEY);
    assert_true(waiting.is_locked());
    assert_true(waiting.end() == status::ok);
}

/* -------------------------------------------------------------------------------------- threads */

/* What a mutex protects. The counter is not atomic: only the holder touches it. */
struct resource {
    std::atomic<int> inside = 0;
    std::atomic<int> failures = 0;
    int taken = 0;
    std::uint64_t fence = 0;

    void use(std::uint64_t now) {
        failures += inside++ != 0;
        failures += now <= fence;
        fence = now;
        taken++;
        inside--;
    }
};

/* Locks in each way in turn. */
static bool lock_somehow(redlock::mutex &mutex, std::size_t turn) {
    switch (turn % 4) {
    case 0:
        return mutex.try_lock();
    case 1:
        return mutex.try_lock_for(milliseconds(1));
#if defined(__cpp_lib_jthread)
    case 2: {
        std::stop_source source;
        std::thread stopper([&source] { source.request_stop(); });
        const bool is_locked = mutex.lock(source.get_token());
        stopper.join();
        return is_locked;
    }
#endif
    default:
        mutex.lock();
        return true;
    }
}

static void threads_exclude_each_other(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(quiet(f));
    redlock::request terms = request_of(KEY);
    terms.fenced = true;
    redlock::mutex shared(client, terms), other(client, terms);
    resource resource;
    std::atomic<int> locked = 0;
    std::vector<std::thread> threads;

    for (std::size_t number = 0; number < THREADS; number++) {
        threads.emplace_back([&, number] {
            redlock::mutex &mutex = number % 4 == 0 ? other : shared;
            for (std::size_t i = 0; i < cycles_here(100); i++) {
                if (lock_somehow(mutex, number + i)) {
                    std::lock_guard guard(mutex, std::adopt_lock);
                    resource.use(mutex.fence());
                    locked++;
                }
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    assert_int_equal(resource.failures, 0);
    assert_int_equal(resource.taken, locked);
    assert_true(resource.taken > 0);
    wait_released(f, KEY);
}

#if defined(__cpp_lib_jthread)
static void a_stop_ends_a_wait(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    redlock::mutex mutex(client, KEY);
    std::stop_source source, unused;
    redlock::error why;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    {
        holder locking(mutex, [&](redlock::mutex &m) { return m.lock(source.get_token()); });
        holder trying(mutex, [&](redlock::mutex &m) {
            return m.try_lock_for(source.get_token(), std::chrono::hours(1));
        });
        wait_pending(client, 2);
        source.request_stop();
        assert_false(locking.is_locked() || trying.is_locked());
        assert_true(!locking.end() && !trying.end());
    }
    assert_false(mutex.lock(source.get_token()));
    assert_true(mutex.acquire(source.get_token(), redlock::forever, &why) == status::canceled);
    assert_true(why.code == status::canceled && !why.message.empty());
    assert_false(mutex.try_lock_for(unused.get_token(), milliseconds(1)));
    rival_frees(f, 0, 5, KEY);
    assert_true(mutex.lock(unused.get_token()));
    unused.request_stop(); /* too late */
    assert_true(mutex.release() == status::ok);
}
#endif

/* --------------------------------------------------------------------------------------- losses */

/* Has the lock of a mutex lost: others delete its key, which the next request notices. */
static void lose(fixture *f, redlock::mutex &mutex) {
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_true(mutex.extend() == status::lost);
}

static void a_loss_is_reported_and_unlock_does_not_throw(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    std::atomic<int> losses = 0;
    std::string reason;
    redlock::mutex mutex(client, request_of(KEY), redlock::on_lost{[&](const redlock::error &why) {
                             reason = why.message;
                             losses += why.code == status::lost;
                         }});
    redlock::mutex plain(client, request_of(KEY),
                         redlock::on_lost{[&](status why) { losses += why == status::lost; }});
    redlock::error why;

    {
        std::lock_guard guard(mutex);
        lose(f, mutex);
        while (losses == 0) {
            std::this_thread::yield();
        }
        assert_true(reason.find("lost") != std::string::npos);
        assert_true(mutex.state() == status::lost && mutex.validity().count() == 0);
        assert_true(mutex.extend({}, &why) == status::lost && why.code == status::lost);
    }
    plain.lock();
    lose(f, plain);
    assert_true(plain.release(&why) == status::lost && !why.message.empty());
    assert_true(plain.release(&why) == status::invalid);
    assert_true(why.message == "the mutex is not locked");
    const int reported = losses; /* not called after the release */
    mutex.lock();
    assert_true(mutex.release() == status::ok);
    assert_int_equal(losses, reported);
}

/* Also when others have the lock by then. */
static void a_thread_that_lost_its_lock_keeps_others_out(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    redlock::mutex mutex(client, request_of(KEY));
    redlock::error why;

    mutex.lock();
    lose(f, mutex);
    assert_true(mutex.acquire(milliseconds(1), &why) == status::held);
    wait_released(f, KEY);
    assert_false(mutex.try_lock());
#if defined(__cpp_lib_jthread)
    {
        std::stop_source source;
        holder stopped(mutex, [&](redlock::mutex &m) { return m.lock(source.get_token()); });
        wait_holders(f, KEY, 5);
        assert_false(stopped.has_ended());
        source.request_stop();
        assert_false(stopped.is_locked());
        wait_released(f, KEY);
    }
#endif
    holder next(mutex);
    const std::string token = wait_value(f, client, "");
    pass_time(2 * LONG_TTL_MS); /* it loses its lock as well, and acquires it again */
    wait_value(f, client, token);
    next.cancel(); /* its lock would stay locked */
    assert_false(next.has_ended());
    assert_true(mutex.release() == status::lost);
    assert_true(next.is_locked());
    assert_true(mutex.validity().count() > 0);
    assert_true(next.end() == status::ok);
}

/* -------------------------------------------------------------------------------------- the end */

static void a_close_wakes_those_who_wait(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    std::atomic<int> losses = 0;
    redlock::mutex mutex(client, request_of(KEY),
                         redlock::on_lost{[&](status why) { losses += why == status::closed; }});
    redlock::mutex lost(client, request_of(OTHER_KEY));
    redlock::error why;

    mutex.lock();
    lost.lock();
    wait_holders(f, OTHER_KEY, 5);
    rival_frees(f, 0, 5, OTHER_KEY);
    assert_true(lost.extend() == status::lost);
    holder waiting(mutex), inside(lost);
    wait_holders(f, OTHER_KEY, 5); /* it has the lock, but not the mutex */
    wait_pending(client, 1);
    assert_int_equal(client.close(), 0);
    assert_false(waiting.is_locked() || inside.is_locked());
    assert_true(waiting.end() == status::closed && inside.end() == status::closed);
    assert_int_equal(losses, 1);
    assert_true(mutex.state() == status::closed && mutex.validity().count() == 0);
    assert_true(mutex.release() == status::closed);
    assert_true(mutex.release() == status::invalid);
    assert_true(thrown_by([&] { mutex.lock(); }) == status::closed);
    assert_true(thrown_by([&] { return mutex.try_lock(); }) == status::closed);
    assert_true(mutex.acquire({}, &why) == status::closed);
    assert_true(why.message == "the client is closed");
    wait_released(f, KEY);
}

/* Runs in a child, and returns whether it has found everything as it should be. */
template <class F> static bool is_so_in_child(F check) {
    pid_t child = fork();
    int result = 0;

    if (child == 0) {
        alarm(60); /* one that hangs has failed */
        std::set_terminate([] { _exit(42); });
        _exit(check() ? 42 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) && WEXITSTATUS(result) == 42;
}

static void a_child_cannot_affect_its_parents_mutexes(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    redlock::mutex mutex(client, request_of(KEY)), other(client, OTHER_KEY);

    mutex.lock();
    std::atomic<bool> is_over = false;
    std::thread reader([&] { /* at a fork it may be inside the mutex */
                             while (!is_over) {
                                 std::ignore = mutex.validity();
                             }
    });
    for (int i = 0; i < CHILDREN; i++) {
        assert_true(is_so_in_child([&] {
            return thrown_by([&] { other.lock(); }) == status::invalid &&
                   mutex.acquire({}) == status::invalid && mutex.validity().count() == 0 &&
                   mutex.release() == status::invalid;
        }));
    }
    is_over = true;
    reader.join();
    assert_true(mutex.release() == status::ok);
}

/* ----------------------------------------------------------------------- callables and refusals */

static void exceptions_of_callables_go_to_the_handler(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    std::atomic<bool> is_hooked = false;
    std::mutex exclusion;
    std::vector<std::string> caught;
    options.trace = [&](const redlock_event &) {
        if (!is_hooked.exchange(true)) {
            throw std::runtime_error("trace");
        }
    };
    options.on_exception = [&](std::exception_ptr exception) {
        std::lock_guard guard(exclusion);
        caught.push_back(text_of(exception));
    };
    redlock::shared_client client(options);
    redlock::mutex mutex(client, request_of(KEY),
                         redlock::on_lost{[](status) { throw std::runtime_error("lost"); }});

    mutex.lock();
    assert_int_equal(client.close(), 0);
    assert_true((caught == std::vector<std::string>{"trace", "lost"}));
    options.on_exception = nullptr;
    is_hooked = false;
    assert_true(is_so_in_child([&] {
        redlock::shared_client unguarded(options);
        redlock::mutex never(unguarded, KEY);
        never.lock(); /* its events end the program */
        return false;
    }));
}

static void callables_may_not_wait(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::shared_client client(patient(f));
    redlock::mutex other(client, OTHER_KEY);
    std::optional<redlock::mutex> doomed(std::in_place, client, request_of("doomed"));
    std::atomic<int> refused = 0;
    redlock::mutex *self = nullptr;
    redlock::mutex mutex(client, request_of(KEY), redlock::on_lost{[&](status) {
                             refused += other.acquire(redlock::forever) == status::invalid;
                             refused += self->extend() == status::invalid;
                             refused += self->release() == status::invalid;
                             doomed.reset();
                             refused++;
                         }});

    self = &mutex;
    doomed->lock();
    mutex.lock();
    lose(f, mutex);
    while (refused < 4) {
        std::this_thread::yield();
    }
    assert_true(mutex.release() == status::lost);
    wait_released(f, "doomed");
    wait_released(f, OTHER_KEY);
    other.lock();
}

static void what_cannot_be_is_refused(void **state) {
    auto *f = static_cast<fixture *>(*state);
    redlock::options options = patient(f);
    redlock::error why;

    options.nodes.clear();
    assert_true(thrown_by([&] { redlock::shared_client none(options); }) == status::invalid);
    options.max_ttl = milliseconds(-1);
    redlock::shared_client none(options, why);
    assert_false(none);
    assert_true(why == status::invalid && why.message == "a duration of the options is negative");
    redlock::mutex nowhere(none, KEY);
    assert_true(nowhere.acquire({}, &why) == status::invalid);
    assert_true(why.message == "the client was refused when it was created");
    assert_int_equal(none.close(), 0);

    redlock::shared_client client(patient(f), why);
    assert_true(client && why == status::ok);
    redlock::request terms = request_of(KEY);
    terms.wait = milliseconds(-1);
    redlock::mutex negative(client, terms), nameless(client, ""), mutex(client, KEY);
    assert_true(thrown_by([&] { negative.lock(); }) == status::invalid);
    assert_true(thrown_by([&] { return negative.try_lock(); }) == status::invalid);
    assert_true(thrown_by([&] { return nameless.try_lock(); }) == status::invalid);
    assert_true(nameless.acquire({}, &why) == status::invalid);
    assert_true(why.message.find("key") != std::string::npos);
    assert_true(mutex.acquire(milliseconds(-1), &why) == status::invalid);
    assert_true(mutex.extend({}, &why) == status::invalid);
    assert_true(why.message == "the mutex is not locked");
    assert_true(mutex.key().empty() && mutex.native() == nullptr);
    mutex.unlock();
    mutex.lock();
    assert_true(mutex.extend(milliseconds(-1), &why) == status::invalid);
    assert_true(mutex.release() == status::ok);
}

int main() {
    const CMUnitTest tests[] = {
        IN_WORLD(guards_of_the_standard_library_work),
        IN_WORLD(a_mutex_has_the_terms_of_its_request),
        IN_WORLD(a_lock_waits_as_long_as_it_may),
        IN_WORLD(threads_exclude_each_other),
#if defined(__cpp_lib_jthread)
        IN_WORLD(a_stop_ends_a_wait),
#endif
        IN_WORLD(a_loss_is_reported_and_unlock_does_not_throw),
        IN_WORLD(a_thread_that_lost_its_lock_keeps_others_out),
        IN_WORLD(a_close_wakes_those_who_wait),
        IN_WORLD(a_child_cannot_affect_its_parents_mutexes),
        IN_WORLD(exceptions_of_callables_go_to_the_handler),
        IN_WORLD(callables_may_not_wait),
        IN_WORLD(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
