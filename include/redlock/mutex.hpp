/*
 * Mutexes for programs with threads, in C++17 and later: distributed locks for std::lock_guard,
 * std::unique_lock and std::scoped_lock. Over redlock/mt.h, whose contracts hold here too; needs
 * neither redlock.hpp nor libevent. See lib/doc/cpp.md, Threads.
 *
 *     redlock::options options;
 *     options.nodes = {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
 *     redlock::shared_client client(options);
 *     redlock::mutex orders(client, "orders:42");
 *     ...
 *     std::lock_guard guard(orders);
 *
 * Rules of the whole header:
 *
 *  - Threads. Any thread may make any call at any time. But release, unlock and extend are for the
 *    thread that has locked the mutex, or to which that thread has passed it.
 *  - One thread at a time is between a lock and its unlock of one mutex object, also when the lock
 *    at the masters was lost meanwhile. Readers and holders of permits need an object each.
 *  - A mutex is not recursive: a thread that locks it twice waits for itself.
 *  - Callables run on the library's thread, one at a time. They must not wait: calls that wait are
 *    refused there with status::invalid, and change nothing. No call is a cancellation point.
 *  - Lifetimes. A shared_client outlives its mutexes, and a mutex all calls on it. The destruction
 *    of a locked mutex releases it.
 *  - After close(), calls are refused with status::closed; in a child after fork(), with
 *    status::invalid.
 *  - With -fno-exceptions, a call that would throw ends the program by std::terminate; acquire,
 *    extend and release return a status.
 */
#ifndef REDLOCK_MUTEX_HPP
#define REDLOCK_MUTEX_HPP

#include "mt.h"
#include "options.hpp"
#include "status.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>
#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

namespace redlock {

namespace detail {

/* Throws a failure. */
[[noreturn]] inline void raise(const error &why) {
#if defined(__cpp_exceptions)
    throw std::system_error(why.code, why.message);
#else
    (void)why;
    std::terminate();
#endif
}

/* Stores a failure for the caller, unless it wants none, and returns its status. */
inline status fail(redlock_status code, const char *message, error *why) {
    if (why != nullptr) {
        *why = {static_cast<status>(code), message};
    }
    return static_cast<status>(code);
}

/* Keeps a wait from being a cancellation point: the lock of a canceled thread would stay locked. */
class uncancelable {
  public:
    uncancelable() noexcept {
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
    }
    uncancelable(const uncancelable &) = delete;
    uncancelable &operator=(const uncancelable &) = delete;
    ~uncancelable() {
        ::pthread_setcancelstate(before_, nullptr);
    }

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

/* The hooks of a shared client, which the library calls. */
struct hooks {
    template <class F> void guard(F &&f) const noexcept {
        if (std::exception_ptr thrown = caught(f)) {
            if (!on_exception) {
                die(thrown);
            }
            on_exception(std::move(thrown));
        }
    }

    std::function<void(redlock::log_level, std::string_view)> log;
    std::function<void(const redlock_event &)> trace;
    std::function<void(std::exception_ptr)> on_exception;
};

/* The end of a wait. */
class deadline {
    using clock = std::chrono::steady_clock;

  public:
    explicit deadline(duration wait) noexcept
        : is_endless_(wait.ms() > most_ms),
          end_(clock::now() + chrono_ms(is_endless_ ? 0 : wait.ms())) {
    }

    std::uint64_t left_ms() const noexcept {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - clock::now()).count();
        return is_endless_ ? REDLOCK_FOREVER : left > 0 ? static_cast<std::uint64_t>(left) : 0;
    }

    /* Waits until then, or until the condition holds. */
    template <class Condition>
    void wait(std::condition_variable &changed, std::unique_lock<std::mutex> &inside,
              Condition condition) const {
        if (is_endless_) {
            changed.wait(inside, condition);
        } else {
            changed.wait_until(inside, end_, condition);
        }
    }

  private:
    static constexpr std::uint64_t most_ms = UINT64_C(1) << 40; /* 34 years */
    bool is_endless_;
    clock::time_point end_;
};

/* Returns a time to wait in whole milliseconds, rounded up; 0 for one that has passed. */
template <class Rep, class Period>
duration wait_of(const std::chrono::duration<Rep, Period> &time) noexcept {
    using std::chrono::milliseconds;
    if (!(time > time.zero())) {
        return {};
    }
    return std::chrono::duration<double, std::milli>(time).count() > 1e12
               ? forever
               : duration(std::chrono::ceil<milliseconds>(time));
}

/* A stop token that never stops. */
struct unstoppable {
    bool stop_requested() const noexcept {
        return false;
    }
};

/* Calls `f` when a stop is requested, while the result exists. */
template <class F> unstoppable on_stop(unstoppable never, F &&) noexcept {
    return never;
}
#if defined(__cpp_lib_jthread)
template <class F> std::stop_callback<std::decay_t<F>> on_stop(std::stop_token stop, F &&f) {
    return std::stop_callback<std::decay_t<F>>(std::move(stop), std::forward<F>(f));
}
#endif

} // namespace detail

/* --------------------------------------------------------------------------------------- client */

/*
 * A client that all threads share: a redlock_mt. The hooks of its options are called on the
 * library's thread; an exception that leaves one, or a callable, goes to options::on_exception, or
 * else ends the program.
 */
class shared_client {
  public:
    /* Creates a client: redlock_mt_create. Throws std::system_error when refused. */
    explicit shared_client(const options &chosen) {
        error why;
        if (create(chosen, &why) != status::ok) {
            detail::raise(why);
        }
    }

    /* Creates a client; one that was refused is false, and refuses calls with status::invalid. */
    shared_client(const options &chosen, error &why) {
        why.code = create(chosen, &why);
    }
    shared_client(const shared_client &) = delete;
    shared_client &operator=(const shared_client &) = delete;

    /* Closes the client, and waits until that is done. */
    ~shared_client() {
        redlock_mt_free(mt_);
    }

    explicit operator bool() const noexcept {
        return mt_ != nullptr;
    }

    /*
     * Closes the client: redlock_mt_close. Threads that wait for a mutex get status::closed, and
     * locked mutexes are lost. Returns the number of releases that were not confirmed.
     */
    std::uint64_t close() noexcept {
        std::uint64_t unreleased = 0;
        redlock_mt_close(mt_, &unreleased);
        return unreleased;
    }

    /* Returns the client for redlock/mt.h: redlock_mt_inspect, redlock_mt_run. */
    redlock_mt *native() const noexcept {
        return mt_;
    }

  private:
    friend class mutex;

    status create(const options &chosen, error *why) {
        detail::c_options given(chosen);
        redlock_error refusal{};
        if (given.refusal != nullptr) {
            return detail::fail(REDLOCK_EINVAL, given.refusal, why);
        }
        hooks_ = {chosen.log, chosen.trace, chosen.on_exception};
        given.set_hooks(&hooks_);
        const redlock_status code = redlock_mt_create(&given.raw, &mt_, &refusal);
        return code == REDLOCK_OK ? status::ok : detail::fail(code, refusal.message, why);
    }

    bool is_inherited() const noexcept {
        return ::getpid() != process_;
    }

    detail::hooks hooks_{};
    redlock_mt *mt_ = nullptr;
    const pid_t process_ = ::getpid();
};

/* ---------------------------------------------------------------------------------------- mutex */

/*
 * A mutex at the masters: Lockable and TimedLockable of C++. Requests of several threads queue, and
 * the lock passes between them without a message.
 *
 * Calls that do not throw have an `error`: unless NULL, it receives the status and a sentence when
 * that is not status::ok.
 */
class mutex {
  public:
    /* A mutex that is renewed until it is unlocked. Nothing is sent yet. */
    mutex(shared_client &client, std::string_view key) : mutex(client, renewed(key)) {
    }

    /*
     * A mutex with all terms of a request, which is copied. `loss` is called with an error, or its
     * status, when the lock is lost, until unlock; neither that nor release returns while it runs.
     */
    template <class F = std::function<void(const error &)>>
    mutex(shared_client &client, const request &terms, on_lost<F> loss = {})
        : client_(client), terms_(terms), key_(terms.key),
          keys_(terms.keys.begin(), terms.keys.end()), on_lost_(std::move(loss.call)) {
        terms_.key = key_;
        terms_.keys.assign(keys_.begin(), keys_.end());
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    ~mutex() {
        if (release() == status::invalid) { /* in a callable the lock must not stay */
            redlock_mt_begin_release(std::exchange(held_, nullptr), nullptr, nullptr);
        }
    }

    /*
     * Locks, and waits for request::wait, without limit if that is {}. Throws std::system_error, of
     * the category of status, with the reason.
     */
    void lock() {
        error why;
        if (acquire(patience(), &why) != status::ok) {
            detail::raise(why);
        }
    }

    /* Locks if one try succeeds. Throws when no later one could: see is_retryable. */
    [[nodiscard]] bool try_lock() {
        return try_lock_for(std::chrono::milliseconds(0));
    }

    /* Locks, and waits for that long. Returns and throws as try_lock. */
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time) {
        error why;
        return is_locked(acquire(detail::wait_of(time), &why), why);
    }

    /* Locks, and waits until then. Returns and throws as try_lock. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        const auto now = Clock::now();
        return time > now ? try_lock_for(time - now) : try_lock();
    }

    /* Releases the lock, and waits for that, also of a lock that was lost. */
    void unlock() noexcept {
        release();
    }

#if defined(__cpp_lib_jthread)
    /* Locks as lock() does; returns false when a stop is requested first. */
    [[nodiscard]] bool lock(std::stop_token stop) {
        error why;
        const status code = acquire(std::move(stop), patience(), &why);
        if (code != status::ok && code != status::canceled) {
            detail::raise(why);
        }
        return code == status::ok;
    }

    /* Locks as try_lock_for above; returns false also when a stop is requested first. */
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::stop_token stop,
                                    const std::chrono::duration<Rep, Period> &time) {
        error why;
        return is_locked(acquire(std::move(stop), detail::wait_of(time), &why), why);
    }

    /* Locks as acquire below; status::canceled when a stop is requested first. */
    [[nodiscard]] status acquire(std::stop_token stop, duration wait, error *why = nullptr) {
        return acquire_by(stop, wait, why);
    }
#endif

    /* Locks, waits for at most `wait` ({}: one try), and returns the status. */
    [[nodiscard]] status acquire(duration wait, error *why = nullptr) {
        return acquire_by(detail::unstoppable(), wait, why);
    }

    /*
     * Unlocks, and returns the status of redlock_mt_release: status::ok if the lock was held to the
     * end. status::invalid if this mutex is not locked.
     */
    status release(error *why = nullptr) {
        redlock_error refusal{};
        redlock_mt_lock *ending = native();
        if (ending == nullptr) {
            return detail::fail(REDLOCK_EINVAL, unlocked, why);
        }
        /* Its request has ended, so this does not wait, and is refused in callables alone. */
        if (redlock_mt_wait(ending, &refusal) == REDLOCK_EINVAL) {
            return detail::fail(REDLOCK_EINVAL, refusal.message, why);
        }
        {
            std::lock_guard inside(inside_);
            held_ = nullptr;
            changed_.notify_all(); /* inside: the next holder may destroy this object */
        }
        const redlock_status code = redlock_mt_release(ending, &refusal);
        return code == REDLOCK_OK ? status::ok : detail::fail(code, refusal.message, why);
    }

    /* Extends the lock: redlock_mt_extend; {} for the TTL that it has. */
    [[nodiscard]] status extend(duration ttl = {}, error *why = nullptr) {
        redlock_error refusal{};
        redlock_mt_lock *handle = native();
        if (handle == nullptr) {
            return detail::fail(REDLOCK_EINVAL, unlocked, why);
        }
        if (ttl.is_negative()) {
            return detail::fail(REDLOCK_EINVAL, "ttl: must not be negative", why);
        }
        const redlock_status code = redlock_mt_extend(handle, ttl.ms(), &refusal);
        return code == REDLOCK_OK ? status::ok : detail::fail(code, refusal.message, why);
    }

    /* Returns the time for which the lock is still certain; 0 if the mutex is not locked. */
    std::chrono::milliseconds validity() const noexcept {
        return ask([](auto *held) { return detail::chrono_ms(redlock_mt_validity_ms(held)); });
    }

    /* Returns status::ok, or why the lock was lost; status::invalid if the mutex is not locked. */
    status state() const noexcept {
        return ask([](auto *held) { return static_cast<status>(redlock_mt_state(held)); });
    }

    /* Returns the fence of the lock; 0: there is none. */
    std::uint64_t fence() const noexcept {
        return ask([](auto *held) { return redlock_mt_fence(held); });
    }

    /* Returns the key of the lock: of a permit, its own. "" if the mutex is not locked. */
    std::string key() const {
        return ask([](auto *held) {
            std::size_t length = 0;
            const char *found = redlock_mt_key(held, &length);
            return std::string(found, length);
        });
    }

    /* Returns the handle for redlock/mt.h, not to be released there; NULL if not locked. */
    redlock_mt_lock *native() const noexcept {
        return ask([](auto *held) { return held; });
    }

  private:
    static constexpr const char *unlocked = "the mutex is not locked";

    /* Calls `f` with the handle while no other thread changes it. A child of fork() has none. */
    template <class F> std::invoke_result_t<F, redlock_mt_lock *> ask(F f) const {
        redlock_mt_lock *none = nullptr;
        if (client_.is_inherited()) { /* `inside_` may be locked for ever */
            return f(none);
        }
        std::lock_guard inside(inside_);
        return f(held_);
    }

    static request renewed(std::string_view key) {
        request terms;
        terms.key = key;
        terms.watchdog = true;
        return terms;
    }

    duration patience() const noexcept {
        return terms_.wait.ms() != 0 || terms_.wait.is_negative() ? terms_.wait : forever;
    }

    static bool is_locked(status code, const error &why) {
        if (code != status::ok && code != status::canceled && !is_retryable(code)) {
            detail::raise(why);
        }
        return code == status::ok;
    }

    template <class Token> status acquire_by(const Token &stop, duration wait, error *why) {
        if (wait.is_negative()) {
            return detail::fail(REDLOCK_EINVAL, "wait: must not be negative", why);
        }
        if (!client_) {
            return detail::fail(REDLOCK_EINVAL, "the client was refused when it was created", why);
        }
        const detail::deadline end(wait);
        status code;
        do {
            code = attempt(stop, end, why);
        } while (code == status::lost);
        return code;
    }

    /* Acquires the lock at the masters, then this object: status::lost if it was lost by then. */
    template <class Token>
    status attempt(const Token &stop, const detail::deadline &end, error *why) {
        detail::c_request given(terms_);
        redlock_error refusal{};
        redlock_mt_lock *got = nullptr;
        bool is_acquired = false;

        if (stop.stop_requested()) {
            return detail::fail(REDLOCK_ECANCELED, redlock_strerror(REDLOCK_ECANCELED), why);
        }
        if (given.refusal != nullptr) {
            return detail::fail(REDLOCK_EINVAL, given.refusal, why);
        }
        given.raw.wait_ms = end.left_ms();
        given.raw.retries = given.raw.wait_ms != 0 ? terms_.retries : 0;
        if (given.raw.wait_ms == 0 && native() != nullptr) { /* a try could not succeed */
            return detail::fail(REDLOCK_EHELD, redlock_strerror(REDLOCK_EHELD), why);
        }
        redlock_status code = redlock_mt_begin_acquire(client_.native(), &given.raw, nullptr,
                                                       nullptr, &got, &refusal);
        if (code != REDLOCK_OK) {
            return detail::fail(code, refusal.message, why);
        }
        { /* no stop may reach the handle once it is released */
            [[maybe_unused]] const auto stopper = detail::on_stop(stop, [this, got] {
                redlock_mt_cancel(got);
                std::lock_guard inside(inside_);
                changed_.notify_all();
            });
            code = redlock_mt_wait(got, &refusal);
            is_acquired = code == REDLOCK_OK;
            if (is_acquired) {
                code = enter(got, stop, end);
            }
        }
        if (code == REDLOCK_OK) {
            return status::ok;
        }
        if (!is_acquired) {
            redlock_mt_begin_release(got, nullptr, nullptr);
            return detail::fail(code, refusal.message, why);
        }
        redlock_mt_release(got, nullptr); /* waits: on_loss may run until then */
        return detail::fail(code, redlock_strerror(code), why);
    }

    /*
     * Gives this object to the new lock. A thread that has lost its lock may still be between lock
     * and unlock: waits for it, unless the new lock is lost too.
     */
    template <class Token>
    redlock_status enter(redlock_mt_lock *got, const Token &stop, const detail::deadline &end) {
        const auto is_lost = [got] { return redlock_mt_state(got) != REDLOCK_OK; };
        const detail::uncancelable here;
        std::unique_lock inside(inside_);

        if ((held_ != nullptr || on_lost_) &&
            redlock_mt_on_lost(got, on_loss, this) != REDLOCK_OK) {
            return REDLOCK_ELOST; /* the client has closed */
        }
        end.wait(changed_, inside,
                 [&] { return held_ == nullptr || is_lost() || stop.stop_requested(); });
        if (is_lost()) {
            return REDLOCK_ELOST;
        }
        if (held_ == nullptr) {
            held_ = got;
            return REDLOCK_OK;
        }
        return stop.stop_requested() ? REDLOCK_ECANCELED : REDLOCK_EHELD;
    }

    static void on_loss(redlock_mt_lock *lost, redlock_status code, const char *why,
                        void *arg) noexcept {
        auto *self = static_cast<mutex *>(arg);
        {
            std::lock_guard inside(self->inside_);
            self->changed_.notify_all();
            if (lost != self->held_) {
                return;
            }
        }
        if (self->on_lost_) {
            self->client_.hooks_.guard([&] {
                self->on_lost_(error{static_cast<status>(code), why});
            });
        }
    }

    shared_client &client_;
    request terms_; /* with `key_` and `keys_` */
    std::string key_;
    std::vector<std::string> keys_;
    std::function<void(const error &)> on_lost_;

    mutable std::mutex inside_{}; /* for two fields below; never held while waiting for masters */
    std::condition_variable changed_{};
    redlock_mt_lock *held_ = nullptr; /* of the thread that has locked this object */
};

} // namespace redlock

#endif
