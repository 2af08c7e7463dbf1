/*
 * Coroutines, for C++20: the results of redlock.hpp, to be awaited. The rules of redlock.hpp hold
 * here too. See lib/doc/cpp.md, Coroutines.
 */
#ifndef REDLOCK_COROUTINES_HPP
#define REDLOCK_COROUTINES_HPP

#include "../redlock.hpp"

#if !defined(__cpp_impl_coroutine) || __cplusplus < 202002L
#error "redlock/coroutines.hpp needs C++20"
#endif

#include <coroutine>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

namespace redlock {

/* ------------------------------------------------------------------------------------- awaiting */

namespace detail {

/* Stores a result, and resumes a coroutine that waits for it. */
template <class T> struct mailbox {
    template <class U> void operator()(U &&result) {
        if (!is_open) {
            return;
        }
        value.emplace(std::forward<U>(result));
        if (std::coroutine_handle<> waiting = std::exchange(waiter, nullptr)) {
            waiting.resume();
        }
    }

    std::optional<T> value{};
    std::coroutine_handle<> waiter{};
    bool is_open = true;
};

} // namespace detail

/*
 * A result to come: `T result = co_await ...`. The request begins with the call, not when it is
 * awaited. Await it once: later, or when moved from, it is status::invalid. The coroutine is
 * resumed from the loop, unless the result is there. Destroyed before, it cancels an acquisition,
 * or releases its lock; other results are dropped.
 */
template <class T> class [[nodiscard]] awaitable {
  public:
    explicit awaitable(T refused) : ready_(std::move(refused)) {
    }
    awaitable(detail::block *request, detail::mailbox<T> *result) noexcept
        : request_(request), result_(result) {
    }
    awaitable(const awaitable &) = delete;
    awaitable &operator=(const awaitable &) = delete;
    awaitable(awaitable &&other) noexcept
        : request_(std::move(other.request_)), result_(other.result_),
          ready_(std::exchange(other.ready_, std::nullopt)) {
    }
    awaitable &operator=(awaitable &&other) noexcept {
        if (this != &other) {
            abandon();
            request_ = std::move(other.request_);
            result_ = other.result_;
            ready_ = std::exchange(other.ready_, std::nullopt);
        }
        return *this;
    }
    ~awaitable() {
        abandon();
    }

    bool await_ready() const noexcept {
        return !request_ || result_->value.has_value();
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        result_->waiter = waiter;
    }
    T await_resume() {
        std::optional<T> taken = std::move(request_ ? result_->value : ready_);
        request_ = {};
        ready_.reset();
        return taken ? std::move(*taken) : T{status::invalid};
    }

  private:
    void abandon() noexcept {
        if (request_) {
            result_->is_open = false;
            result_->waiter = nullptr;
            result_->value.reset();
            request_->abandon();
        }
    }

    detail::counted<detail::block> request_{};
    detail::mailbox<T> *result_ = nullptr; /* in *request_ */
    std::optional<T> ready_{};
};

/* The loss of a lock, to come: see lock::lost. */
class [[nodiscard]] loss : public detail::watcher {
  public:
    explicit loss(detail::counted<detail::tenure> subject) noexcept : subject_(std::move(subject)) {
    }
    loss(const loss &) = delete;
    loss &operator=(const loss &) = delete;
    ~loss() {
        for (detail::watcher **at = subject_ ? &subject_->watchers : nullptr;
             at != nullptr && *at != nullptr; at = &(*at)->next) {
            if (*at == this) {
                *at = next;
                break;
            }
        }
    }

    bool await_ready() noexcept {
        if (!subject_) {
            code = status::invalid;
        } else if (subject_->loss != status::ok) {
            code = subject_->loss;
        } else if (subject_->handle == nullptr) {
            code = status::canceled;
        }
        return code != status::ok;
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
        resume = [](detail::watcher *self) { static_cast<loss *>(self)->waiter_.resume(); };
        next = std::exchange(subject_->watchers, this);
    }
    status await_resume() const noexcept {
        return code;
    }

  private:
    detail::counted<detail::tenure> subject_;
    std::coroutine_handle<> waiter_{};
};

/* ---------------------------------------------------------------------------------------- tasks */

/*
 * A minimal coroutine type, without a result, for client::start. The task owns the coroutine,
 * unless it is detached, and destroys it if it is suspended: its requests are canceled, its locks
 * released.
 */
class [[nodiscard]] task {
  public:
    struct promise_type {
        task get_return_object() noexcept {
            return task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept {
            return {};
        }
        auto final_suspend() const noexcept {
            struct last {
                bool await_ready() const noexcept {
                    return is_detached;
                }
                void await_suspend(std::coroutine_handle<>) const noexcept {
                }
                void await_resume() const noexcept {
                }
                bool is_detached;
            };
            return last{is_detached};
        }
        void return_void() const noexcept {
        }
        void unhandled_exception() noexcept {
            if (is_starting) {
                thrown = std::current_exception();
            } else {
                home->take(std::current_exception());
            }
        }

        detail::counted<detail::core> home{}; /* NULL: not started */
        std::exception_ptr thrown{};
        bool is_starting = true;
        bool is_detached = false;
    };

    task() noexcept = default;
    task(task &&other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {
    }
    task &operator=(task &&other) noexcept {
        task taken(std::move(other));
        std::swap(coroutine_, taken.coroutine_);
        return *this;
    }
    ~task() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    /* Returns whether the coroutine has ended; true for an empty task. */
    bool done() const noexcept {
        return !coroutine_ || coroutine_.done();
    }

    /* Leaves a started coroutine to end by itself. Destroys one that was not started. */
    void detach() noexcept {
        if (!done() && coroutine_.promise().home) {
            coroutine_.promise().is_detached = true;
            coroutine_ = nullptr;
        }
        *this = task();
    }

  private:
    friend class client;
    explicit task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {
    }

    void begin(const detail::counted<detail::core> &home) {
        promise_type &promise = coroutine_.promise();
        promise.home = home;
        coroutine_.resume();
        promise.is_starting = false;
        if (promise.thrown != nullptr) {
            std::rethrow_exception(std::exchange(promise.thrown, nullptr));
        }
    }

    std::coroutine_handle<promise_type> coroutine_{};
};

/* ------------------------------------------------------------------------------------ internals */

template <class F> awaitable<status> lock::await_call(F &&begin) {
    using call = detail::call_with<detail::mailbox<status>>;
    if (!tenure_) {
        return awaitable<status>(status::invalid);
    }
    detail::counted<call> made(new (std::nothrow)
                                   call(tenure_->home.get(), detail::mailbox<status>()));
    status code = begin(detail::counted<detail::block>(made.get()), made.get());
    return code == status::ok ? awaitable<status>(made.get(), &made->sink)
                              : awaitable<status>(code);
}

inline awaitable<status> lock::release() {
    return await_call([this](auto held, auto *made) { return release_by(held, made); });
}

inline awaitable<status> lock::extend(duration ttl) {
    return await_call([this, ttl](auto held, auto *made) { return extend_by(held, made, ttl); });
}

inline loss lock::lost() const noexcept {
    return loss(tenure_);
}

template <class T, class Call, class F> awaitable<T> client::await_call(F &&begin_call) {
    detail::counted<Call> made;
    status code = call_by<Call>(detail::mailbox<T>(), std::forward<F>(begin_call), &made);
    return code == status::ok ? awaitable<T>(made.get(), &made->sink) : awaitable<T>(T{code});
}

template <class L> awaitable<acquisition> client::acquire(const request &what, on_lost<L> loss) {
    using sink = detail::mailbox<acquisition>;
    using tenure = detail::tenure_with<sink, L>;
    if (!core_) {
        return awaitable(acquisition(status::invalid, error()));
    }
    detail::counted<tenure> made(new (std::nothrow)
                                     tenure(core_.get(), sink(), std::move(loss.call)));
    status code = begin(what, made.get());
    return code == status::ok ? awaitable<acquisition>(made.get(), &*made->sink)
                              : awaitable(acquisition(code, error()));
}

inline awaitable<view> client::inspect(std::string_view key) {
    using call = detail::call_with<detail::mailbox<view>>;
    return await_call<view, call>(detail::inspect_with<call>(native(), key));
}

inline awaitable<status> client::check_fence(std::string_view key, std::uint64_t fence) {
    using call = detail::call_with<detail::mailbox<status>>;
    return await_call<status, call>(detail::check_with<call>(native(), key, fence));
}

inline awaitable<status> client::ready(duration timeout) {
    using call = detail::call_with<detail::mailbox<status>>;
    status code = check(timeout);
    return code == status::ok
               ? await_call<status, call>(detail::ready_with<call>(native(), timeout))
               : awaitable<status>(code);
}

inline task client::start(task begun) {
    if (core_ && begun.coroutine_ && !begun.coroutine_.promise().home) {
        begun.begin(core_);
    }
    return begun;
}

} // namespace redlock

#endif
