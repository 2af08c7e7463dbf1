/*
 * libredlock for C++17 and later: handles that release what they own, and callables as callbacks.
 * With C++20, redlock/coroutines.hpp adds coroutines. The contracts of redlock.h hold here too. See
 * lib/doc/cpp.md.
 *
 * Rules of the whole header:
 *
 *  - One thread. A client and everything made with it belong to the thread that runs the loop.
 *  - No call blocks. A request is refused at once (its status is not status::ok, client::error()
 *    says why, and no callable is called), or is accepted; then its callable is called exactly
 *    once, or its coroutine resumed, later, from the loop.
 *  - Every function may be called from inside any callable, and every object destroyed there. But
 *    the callables of options (log, trace, on_exception) must not call the library, and a coroutine
 *    must not destroy its own task.
 *  - Arguments are copied before the call returns.
 *  - An object that was moved from is empty: its calls are refused with status::invalid.
 *  - Objects may outlive their client: calls are refused with status::closed (but release and
 *    cancel only when it is closed), and a lock's validity() is 0.
 *  - Nothing here throws into the library: see client::rethrow. Strings, vectors and the copying of
 *    a callable may throw in the caller's own frame. Out of memory in the library is
 *    status::no_memory.
 *  - All files of a program must have the same setting of -fno-exceptions; with it, callables
 *    cannot throw.
 */
#ifndef REDLOCK_HPP
#define REDLOCK_HPP

#include "redlock.h"
#include "redlock/loop.h"
#include "redlock/options.hpp"
#include "redlock/status.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

/* --------------------------------------------------------------------------------------- client */

/* State of one node: redlock_node_info, copied. */
struct node_info {
    std::string node;
    bool connected;
    std::string reason;
    std::uint32_t commands;
    std::size_t bytes;
    std::size_t pending_releases;
    std::uint64_t disconnected;
    bool trusted;
    std::string distrust;
    std::chrono::milliseconds distrust_time;
    bool joining;
    bool leaving;
};

/* One node's vote in the last round: redlock_node_report, copied. */
struct node_report {
    std::string node;
    redlock_vote vote;
    std::chrono::milliseconds ttl;
    std::string detail;
};

/* One node's answer about a key: redlock_node_view, copied. */
struct node_view {
    std::string node;
    bool answered;
    bool held;
    std::string owner;
    std::chrono::milliseconds ttl;
    std::uint64_t fence;
    std::string detail;
    std::uint32_t readers;
    std::uint32_t queue_length;
};

/*
 * The result of client::inspect: redlock_view, copied. A key is free only if `code` is status::ok.
 */
struct view {
    status code = status::ok; /* ok, no_quorum, closed, no_memory; or that of a refusal */
    bool held = false;
    std::string owner{};
    std::chrono::milliseconds ttl{};
    std::uint64_t fence = 0;
    std::uint32_t readers = 0;
    std::uint32_t queue_length = 0;
    std::vector<std::string> queue_owners{};
    std::vector<node_view> nodes{};
};

class acquisition;
class client;
class lock;
class task;

/* How a release or extension ended, or why a lock was lost. Valid until the callable returns. */
class outcome {
  public:
    outcome(const redlock_lock *subject, redlock_status code) noexcept
        : lock_(subject), code_(static_cast<status>(code)) {
    }
    outcome(const outcome &) = delete;
    outcome &operator=(const outcome &) = delete;

    status code() const noexcept {
        return code_;
    }
    operator status() const noexcept {
        return code_;
    }

    /* Returns the reason as a sentence: redlock_explain. */
    std::string explain() const {
        return redlock_explain(lock_);
    }

    /* Returns each node's vote in the lock's last round: redlock_report. */
    std::vector<node_report> report() const;

  private:
    const redlock_lock *lock_;
    status code_;
};

/* ------------------------------------------------------------------------------------ internals */

namespace detail {

/* A pointer to an object that is deleted with its last user. */
template <class T> class counted {
  public:
    counted() noexcept = default;
    explicit counted(T *object) noexcept : object_(object) {
        if (object_ != nullptr) {
            object_->users++;
        }
    }
    counted(const counted &other) noexcept : counted(other.object_) {
    }
    counted(counted &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {
    }
    counted &operator=(const counted &other) noexcept {
        return *this = counted(other);
    }
    counted &operator=(counted &&other) noexcept {
        counted taken(std::move(other)); /* as an argument, clang 14 would not destroy {} */
        std::swap(object_, taken.object_);
        return *this;
    }
    ~counted() {
        if (object_ != nullptr) {
            drop(object_);
        }
    }

    T *get() const noexcept {
        return object_;
    }
    T *operator->() const noexcept {
        return object_;
    }
    explicit operator bool() const noexcept {
        return object_ != nullptr;
    }

  private:
    /* Not inline: gcc would warn of uses after the delete. */
    [[gnu::noinline]] static void drop(T *object) noexcept {
        if (--object->users == 0) {
            delete object;
        }
    }

    T *object_ = nullptr;
};

extern "C" int event_base_loopbreak(event_base *base); /* of libevent: its header is not needed */

struct tenure;

/* The state that all objects of a client refer to, and the library until it is closed. */
struct core {
    std::size_t users = 0;
    redlock_client *client = nullptr; /* NULL once it is closed */
    void (*break_loop)(void *loop) = nullptr;
    void *loop = nullptr;
    bool is_closing = false;       /* locks can only be released or canceled */
    bool is_owned = true;          /* the client object exists, and can rethrow */
    const char *refusal = nullptr; /* why this header refused the last call; NULL: the library */
    tenure *tenures = nullptr;     /* all that the library may call back */
    std::exception_ptr exception{};
    std::function<void(redlock::log_level, std::string_view)> log{};
    std::function<void(const redlock_event &)> trace{};
    std::function<void(std::exception_ptr)> on_exception{};

    /* Handles an exception that has left a callable: see client::rethrow. */
    void take(std::exception_ptr thrown) noexcept {
        if (on_exception) {
            on_exception(std::move(thrown));
        } else if (!is_owned) {
            die(thrown);
        } else {
            if (exception == nullptr) {
                exception = std::move(thrown);
            }
            break_loop(loop);
        }
    }

    /*
     * Calls a callable or hook of the application: no exception leaves it. Breaks the loop also for
     * an earlier one.
     */
    template <class F> void guard(F &&f) noexcept {
        if (std::exception_ptr thrown = caught(f)) {
            take(std::move(thrown));
        } else if (exception != nullptr) {
            break_loop(loop);
        }
    }

    status refuse(status code, const char *why) noexcept {
        refusal = why;
        return code;
    }
};

/* The argument of the library's callbacks, which is its user meanwhile. */
struct block {
    explicit block(core *of) noexcept : home(of) {
    }
    block(const block &) = delete;
    block &operator=(const block &) = delete;
    virtual ~block() = default;

    /* Ends what is under way, because its result is not wanted. */
    virtual void abandon() noexcept {
    }

    std::size_t users = 0;
    counted<core> home;
};

/* A coroutine that waits for the loss of a lock. */
struct watcher {
    watcher *next = nullptr;
    status code = status::ok;
    void (*resume)(watcher *self) = nullptr;
};

/* An acquisition, and the lock that it gets, in the list of its core until it has ended. */
struct tenure : block {
    using block::block;

    virtual void report_acquired(acquisition &&result) noexcept = 0;
    virtual void report_lost(const outcome &loss_now) noexcept = 0;
    virtual void drop_lost() noexcept = 0;

    void enlist() noexcept {
        users++;
        next = home->tenures;
        link = &home->tenures;
        if (next != nullptr) {
            next->link = &next;
        }
        home->tenures = this;
    }

    /* Notes that the library calls back no more. May free. */
    void end() noexcept {
        if (link != nullptr) {
            *link = next;
            if (next != nullptr) {
                next->link = link;
            }
            link = nullptr;
            handle = nullptr;
            counted<tenure> last(this);
            users--;
            let_go();
        }
    }

    /* Destroys the callable for the loss, unless report_lost does. */
    void let_go() noexcept {
        if (!std::exchange(is_let_go, true) && loss == status::ok) {
            drop_lost();
        }
    }

    /* Returns whether the lock may be released or canceled, also while closing. */
    bool is_endable() const noexcept {
        return handle != nullptr;
    }
    bool is_usable() const noexcept {
        return is_endable() && !home->is_closing;
    }

    status refuse() const noexcept {
        return home->is_closing ? home->refuse(status::closed, "the client is closing, or closed")
                                : home->refuse(status::invalid, "the lock was released");
    }

    /* Resumes all coroutines that wait for the loss. */
    void wake(status code) noexcept {
        while (watchers != nullptr) {
            watcher *first = std::exchange(watchers, watchers->next);
            first->code = code;
            home->guard([first] { first->resume(first); });
        }
    }

    /* Cancels, unless the result was reported. */
    void abandon() noexcept override {
        if (!is_completed && is_endable()) {
            redlock_cancel(handle);
        }
    }

    static void on_acquired(redlock_lock *handle, redlock_status code, void *arg) noexcept;
    static void on_loss(redlock_lock *handle, redlock_status code, void *arg) noexcept;
    static void on_gone(redlock_lock *handle, redlock_status code, void *arg) noexcept;

    redlock_lock *handle = nullptr;
    tenure *next = nullptr;
    tenure **link = nullptr;
    watcher *watchers = nullptr;
    status loss = status::ok;
    bool is_completed = false; /* on_acquired was called */
    bool is_let_go = false;    /* no loss is reported: the lock object is gone, or all has ended */
};

/* A callable in place of one that was not given. */
struct nothing {
    template <class T> void operator()(T &&) const noexcept {
    }
};

template <class T> struct mailbox;
template <class Sink> inline constexpr bool is_mailbox = false;
template <class T> inline constexpr bool is_mailbox<mailbox<T>> = true;

/* An acquisition with its callables. */
template <class Sink, class Lost> struct tenure_with final : tenure {
    template <class S, class L>
    tenure_with(core *of, S &&result, L &&loss_sink)
        : tenure(of), sink(std::in_place, std::forward<S>(result)),
          lost(std::in_place, std::forward<L>(loss_sink)) {
    }
    void report_acquired(acquisition &&result) noexcept override;
    void report_lost(const outcome &loss_now) noexcept override {
        home->guard([this, &loss_now] { (*lost)(loss_now); });
        lost.reset();
    }
    void drop_lost() noexcept override {
        lost.reset();
    }

    std::optional<Sink> sink;
    std::optional<Lost> lost;
};

/* A request other than an acquisition, with its callable. */
template <class Sink> struct call_with final : block {
    template <class S> call_with(core *of, S &&result) : block(of), sink(std::forward<S>(result)) {
    }

    /* Reports the result: the last call of the library. */
    template <class T> static void end(void *arg, T &&result) noexcept {
        auto *self = static_cast<call_with *>(arg);
        counted<call_with> last(self);
        self->users--;
        self->home->guard([self, &result] { self->sink(std::forward<T>(result)); });
    }
    static void on_ended(redlock_lock *handle, redlock_status code, void *arg) noexcept {
        counted<tenure> subject = static_cast<call_with *>(arg)->subject;
        bool is_gone = subject->handle == nullptr;
        end(arg, outcome(handle, code));
        if (is_gone) {
            subject->wake(status::canceled);
        }
    }
    static void on_view(redlock_status code, const redlock_view *found, void *arg) noexcept;
    static void on_status(redlock_status code, void *arg) noexcept {
        end(arg, static_cast<status>(code));
    }
    static void on_drained(std::uint64_t unreleased, void *arg) noexcept;

    Sink sink;
    counted<tenure> subject{}; /* of a release or extension */
};

/* Ends all locks after the library's client was closed. */
inline void closed(core *home) noexcept {
    home->client = nullptr;
    while (home->tenures != nullptr) {
        counted<tenure> first(home->tenures);
        first->end();
        first->wake(status::closed);
    }
}

inline void on_closed(void *arg) noexcept {
    auto *home = static_cast<core *>(arg);
    counted<core> last(home);
    home->users--;
    closed(home);
}

inline void on_text(const char *text, std::size_t length, void *arg) noexcept {
    (*static_cast<std::function<void(std::string_view)> *>(arg))({text, length});
}

/* Makes the library a user of the block if the call was accepted. Otherwise frees it. */
inline status given(counted<block> what, redlock_status code) noexcept {
    what->home->refusal = nullptr;
    what->users += code == REDLOCK_OK;
    return static_cast<status>(code);
}

inline std::vector<node_report> report(const redlock_lock *lock) {
    redlock_node_report found[REDLOCK_MAX_NODES];
    std::size_t count = redlock_report(lock, found, REDLOCK_MAX_NODES);
    std::vector<node_report> copies;
    for (std::size_t i = 0; i < count && i < REDLOCK_MAX_NODES; i++) {
        copies.push_back(
            {found[i].node, found[i].vote, chrono_ms(found[i].ttl_ms), found[i].detail});
    }
    return copies;
}

inline view copy(redlock_status code, const redlock_view *found) {
    view copied;
    copied.code = static_cast<status>(code);
    if (found == nullptr) {
        return copied;
    }
    copied.held = found->held;
    copied.owner = found->owner;
    copied.ttl = chrono_ms(found->ttl_ms);
    copied.fence = found->fence;
    copied.readers = found->readers;
    copied.queue_length = found->queue_length;
    copied.queue_owners.assign(found->queue_owners, found->queue_owners + found->queue_owner_count);
    for (std::size_t i = 0; i < found->node_count; i++) {
        const redlock_node_view &node = found->nodes[i];
        copied.nodes.push_back({node.node, node.answered, node.held, node.owner,
                                chrono_ms(node.ttl_ms), node.fence, node.detail, node.readers,
                                node.queue_length});
    }
    return copied;
}

/* Return functions that begin a request with the block of its call. */
template <class Call> auto inspect_with(redlock_client *client, std::string_view key) noexcept {
    return [client, key](Call *made) {
        return redlock_inspect(client, bytes(key), key.size(), Call::on_view, made);
    };
}

template <class Call>
auto check_with(redlock_client *client, std::string_view key, std::uint64_t fence) noexcept {
    return [client, key, fence](Call *made) {
        return redlock_check_fence(client, bytes(key), key.size(), fence, Call::on_status, made);
    };
}

template <class Call> auto ready_with(redlock_client *client, duration timeout) noexcept {
    return [client, timeout](Call *made) {
        return redlock_client_ready(client, timeout.ms(), Call::on_status, made);
    };
}

template <class Call> auto close_with(core *home) noexcept {
    return [home](Call *made) {
        home->is_closing = true;
        redlock_client_drain(home->client, Call::on_drained, made);
        return REDLOCK_OK;
    };
}

} // namespace detail

inline std::vector<node_report> outcome::report() const {
    return detail::report(lock_);
}

/* Of redlock/coroutines.hpp: a result to come, the loss of a lock, a coroutine. */
template <class T> class awaitable;
class loss;
class task;

/* ---------------------------------------------------------------------------------------- locks */

/*
 * A held lock. Destruction, assignment and reset() release it without a result, release() with one.
 * A lost lock must be released too.
 */
class lock {
  public:
    lock() noexcept = default;
    explicit lock(detail::tenure *held) noexcept : tenure_(held) {
    }
    lock(lock &&) noexcept = default;
    lock &operator=(lock &&other) noexcept {
        lock taken(std::move(other));
        std::swap(tenure_, taken.tenure_);
        return *this;
    }
    ~lock() {
        reset();
    }

    /* Returns whether there is a lock, held or lost, and its client is not closing. */
    explicit operator bool() const noexcept {
        return tenure_ && tenure_->is_usable();
    }

    /* Releases the lock, and leaves this object empty. */
    void reset() noexcept {
        if (!tenure_) {
            return;
        }
        detail::counted<detail::tenure> gone = std::move(tenure_);
        const bool is_watched = gone->watchers != nullptr;
        if (gone->is_endable() &&
            redlock_release(gone->handle, is_watched ? detail::tenure::on_gone : nullptr,
                            gone.get()) == REDLOCK_OK) {
            gone->users += is_watched;
            gone->end();
        }
        gone->let_go();
    }

    /*
     * Releases the lock: redlock_release. `on_released` is called with an outcome or its status.
     * This object is then empty, and the lock released, even if the call is refused.
     */
    template <class F> [[nodiscard]] status release(F &&on_released) {
        using call = detail::call_with<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const outcome &>);
        if (!tenure_) {
            return status::invalid;
        }
        auto *made = new (std::nothrow) call(tenure_->home.get(), std::forward<F>(on_released));
        return release_by(detail::counted<detail::block>(made), made);
    }

    /*
     * Extends the lock: redlock_extend; {} for the TTL that it has. `on_extended` is called with an
     * outcome or its status.
     */
    template <class F> [[nodiscard]] status extend(duration ttl, F &&on_extended) {
        using call = detail::call_with<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const outcome &>);
        if (!tenure_) {
            return status::invalid;
        }
        auto *made = new (std::nothrow) call(tenure_->home.get(), std::forward<F>(on_extended));
        return extend_by(detail::counted<detail::block>(made), made, ttl);
    }

    /* The same, to be awaited: defined in redlock/coroutines.hpp. */

    /* Releases the lock, as above: `status code = co_await lock.release()`. */
    awaitable<status> release();

    /* Extends the lock, as above: `status code = co_await lock.extend(10s)`. */
    awaitable<status> extend(duration ttl = {});

    /*
     * Waits for the loss: `status why = co_await lock.lost()`. status::canceled when the lock is
     * released meanwhile; otherwise as with on_lost.
     */
    loss lost() const noexcept;

    /*
     * Leaves the lock held until the client closes, or, without a watchdog, its TTL ends. on_lost
     * is still called.
     */
    void detach() noexcept {
        tenure_ = {};
    }

    /* Returns the time for which the lock is still certain, rounded down: redlock_validity_ms. */
    std::chrono::milliseconds validity() const noexcept {
        return detail::chrono_ms(redlock_validity_ms(native()));
    }

    /* Returns the fence; 0: the lock has none. */
    std::uint64_t fence() const noexcept {
        return redlock_fence(native());
    }

    /* Returns a key, valid while the lock is held: redlock_key_at. */
    std::string_view key(std::size_t index = 0) const noexcept {
        std::size_t length = 0;
        const char *found = redlock_key_at(native(), index, &length);
        return {found, length};
    }

    /* Return the last round, as a sentence and for each node: redlock_explain, redlock_report. */
    std::string explain() const {
        return redlock_explain(native());
    }
    std::vector<node_report> report() const {
        return detail::report(native());
    }

    /* Returns the handle for redlock.h, not to be released there; NULL as with bool. */
    redlock_lock *native() const noexcept {
        return *this ? tenure_->handle : nullptr;
    }

  private:
    template <class Call>
    status release_by(detail::counted<detail::block> held, Call *made) noexcept {
        detail::counted<detail::tenure> gone = tenure_;
        if (!held || !gone->is_endable()) {
            reset();
            return !held ? gone->home->refuse(status::no_memory, "out of memory") : gone->refuse();
        }
        tenure_ = {};
        made->subject = gone;
        status code =
            detail::given(std::move(held), redlock_release(gone->handle, Call::on_ended, made));
        if (code == status::ok) {
            gone->end();
        }
        gone->let_go();
        return code;
    }

    template <class Call>
    status extend_by(detail::counted<detail::block> held, Call *made, duration ttl) noexcept {
        if (!held) {
            return tenure_->home->refuse(status::no_memory, "out of memory");
        }
        if (!tenure_->is_usable()) {
            return tenure_->refuse();
        }
        if (ttl.is_negative()) {
            return tenure_->home->refuse(status::invalid, "ttl: must not be negative");
        }
        made->subject = tenure_;
        return detail::given(std::move(held),
                             redlock_extend(tenure_->handle, ttl.ms(), Call::on_ended, made));
    }

    template <class F> awaitable<status> await_call(F &&begin);

    detail::counted<detail::tenure> tenure_{};
};

/* The result of client::acquire. Releases a lock that is not moved out. */
class acquisition {
  public:
    acquisition(detail::tenure *subject, status code) noexcept
        : subject_(subject), lock_(code == status::ok ? redlock::lock(subject) : redlock::lock()),
          code_(code) {
    }
    explicit acquisition(status code, std::string refusal = {}) noexcept
        : code_(code), refusal_(std::move(refusal)) {
    }
    acquisition(acquisition &&other) noexcept
        : subject_(std::move(other.subject_)), lock_(std::move(other.lock_)),
          code_(std::exchange(other.code_, status::invalid)),
          refusal_(std::exchange(other.refusal_, {})) {
    }
    acquisition &operator=(acquisition &&other) noexcept {
        subject_ = std::move(other.subject_);
        lock_ = std::move(other.lock_);
        code_ = std::exchange(other.code_, status::invalid);
        refusal_ = std::exchange(other.refusal_, {});
        return *this;
    }
    ~acquisition() = default;

    /* Returns whether the lock was acquired. */
    explicit operator bool() const noexcept {
        return code_ == status::ok;
    }

    /* Returns the status: of redlock_acquire, or of the refusal of an awaited call. */
    status code() const noexcept {
        return code_;
    }

    /* The lock; an empty one after a failure, or when it was moved out. */
    redlock::lock &operator*() & {
        return lock_;
    }
    redlock::lock &&operator*() && {
        return std::move(lock_);
    }
    redlock::lock *operator->() noexcept {
        return &lock_;
    }

    /*
     * Returns the reason: redlock_explain, until the callable returns, or the coroutine is
     * suspended again. Later: the sentence of the status.
     */
    std::string explain() const {
        return handle() != nullptr ? redlock_explain(handle())
               : !refusal_.empty() ? refusal_
                                   : message(code_);
    }

    /* Returns each node's vote in the last round; later: none. */
    std::vector<node_report> report() const {
        return detail::report(handle());
    }

  private:
    /* Returns the handle; after a failure, until the callable returns, also while closing. */
    const redlock_lock *handle() const noexcept {
        return subject_ && (code_ != status::ok || subject_->is_usable()) ? subject_->handle
                                                                          : nullptr;
    }

    detail::counted<detail::tenure> subject_{};
    redlock::lock lock_{};
    status code_;
    std::string refusal_{};
};

/*
 * An acquisition under way, or its refusal. Its destruction ends nothing: the callable is called
 * anyway.
 */
class [[nodiscard]] attempt {
  public:
    attempt() noexcept = default;
    explicit attempt(status refused) noexcept : code_(refused) {
    }
    explicit attempt(detail::tenure *begun) noexcept : tenure_(begun), code_(status::ok) {
    }
    attempt(attempt &&other) noexcept
        : tenure_(std::move(other.tenure_)), code_(std::exchange(other.code_, status::invalid)) {
    }
    attempt &operator=(attempt &&other) noexcept {
        tenure_ = std::move(other.tenure_);
        code_ = std::exchange(other.code_, status::invalid);
        return *this;
    }
    ~attempt() = default;

    /* Returns whether the request was accepted. */
    explicit operator bool() const noexcept {
        return code_ == status::ok;
    }

    /* Returns status::ok, or why the request was refused: redlock_acquire. */
    status code() const noexcept {
        return code_;
    }

    /*
     * Cancels: the callable is called with status::canceled. Refused with status::invalid when the
     * result was reported, or is about to be.
     */
    status cancel() noexcept {
        if (!tenure_ || tenure_->is_completed) {
            return status::invalid;
        }
        if (!tenure_->is_endable()) {
            return tenure_->refuse();
        }
        tenure_->home->refusal = nullptr;
        return static_cast<status>(redlock_cancel(tenure_->handle));
    }

    /* Return the reasons of the last try, until the result is reported. */
    std::string explain() const {
        return is_pending() ? redlock_explain(tenure_->handle) : "";
    }
    std::vector<node_report> report() const {
        return detail::report(is_pending() ? tenure_->handle : nullptr);
    }

  private:
    bool is_pending() const noexcept {
        return tenure_ && !tenure_->is_completed && tenure_->is_usable();
    }

    detail::counted<detail::tenure> tenure_{};
    status code_ = status::invalid;
};

/* The record of a resource: redlock_gate. */
class gate {
  public:
    constexpr explicit gate(std::uint64_t fence = 0) noexcept : gate_{fence} {
    }

    /* Returns whether to accept a request that carries `fence`; then remembers it. */
    bool admit(std::uint64_t fence) noexcept {
        return redlock_gate_admit(&gate_, fence);
    }

    /* Returns the largest fence seen so far, to be stored. */
    constexpr std::uint64_t fence() const noexcept {
        return gate_.fence;
    }

  private:
    redlock_gate gate_;
};

/* --------------------------------------------------------------------------------------- client */

/*
 * A client. Its destruction closes it, as redlock_client_close does, from the loop, which must go
 * on. Callables may be called after that; they must not refer to the client object. close() reports
 * the end.
 */
class client {
  public:
    client() noexcept = default;
    client(client &&) noexcept = default;
    client &operator=(client &&other) noexcept {
        if (this != &other) {
            end();
            core_ = std::move(other.core_);
        }
        return *this;
    }
    ~client() {
        end();
    }

    /* Creates a client on `base`: redlock_client_create. Empty when refused: see `why`. */
    static client create(event_base *base, const options &chosen, error *why = nullptr);

    /* Creates a client on a loop of redlock/loop.h, likewise: redlock_client_create_on. */
    static client create_on(redlock_loop *loop, const options &chosen, error *why = nullptr);

    /* Returns whether there is a client that has not begun to close. */
    explicit operator bool() const noexcept {
        return core_ && !core_->is_closing;
    }

    /*
     * Acquires: redlock_acquire. `on_acquired` is called with an acquisition, `loss` when the lock
     * is lost.
     */
    template <class F, class L = detail::nothing>
    attempt acquire(const request &what, F &&on_acquired, on_lost<L> loss = {}) {
        static_assert(std::is_invocable_v<std::decay_t<F> &, acquisition>);
        static_assert(std::is_invocable_v<L &, const outcome &>);
        using tenure = detail::tenure_with<std::decay_t<F>, L>;
        if (!core_) {
            return attempt(status::invalid);
        }
        detail::counted<tenure> made(new (std::nothrow) tenure(
            core_.get(), std::forward<F>(on_acquired), std::move(loss.call)));
        status code = begin(what, made.get());
        return code == status::ok ? attempt(made.get()) : attempt(code);
    }

    /* Asks who holds a key: redlock_inspect. `on_view` takes a view. */
    template <class F> [[nodiscard]] status inspect(std::string_view key, F &&on_view) {
        using call = detail::call_with<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, view>);
        return call_by<call>(std::forward<F>(on_view), detail::inspect_with<call>(native(), key));
    }

    /* Asks whether a fence is still the newest: redlock_check_fence. `on_fence` takes a status. */
    template <class F>
    [[nodiscard]] status check_fence(std::string_view key, std::uint64_t fence, F &&on_fence) {
        using call = detail::call_with<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, status>);
        return call_by<call>(std::forward<F>(on_fence),
                             detail::check_with<call>(native(), key, fence));
    }

    /* Waits for a quorum: redlock_client_ready. `on_ready` takes a status. `forever`: no limit. */
    template <class F> [[nodiscard]] status ready(duration timeout, F &&on_ready) {
        using call = detail::call_with<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, status>);
        status code = check(timeout);
        return code == status::ok ? call_by<call>(std::forward<F>(on_ready),
                                                  detail::ready_with<call>(native(), timeout))
                                  : code;
    }

    /*
     * Closes: redlock_client_drain. `on_closed` takes the number of unconfirmed releases.
     */
    template <class F> [[nodiscard]] status close(F &&on_closed) {
        using call = detail::call_with<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, std::uint64_t>);
        return call_by<call>(std::forward<F>(on_closed), detail::close_with<call>(core_.get()));
    }

    /* Closes without a report. */
    void close() noexcept {
        if (*this) {
            core_->is_closing = true;
            redlock_client_close(core_->client, detail::on_closed, core_.get());
        }
    }

    /* The same, to be awaited: defined in redlock/coroutines.hpp. */

    /* Acquires, as above: `acquisition got = co_await client.acquire(request)`. */
    template <class L = detail::nothing>
    awaitable<acquisition> acquire(const request &what, on_lost<L> loss = {});

    /* Asks, as above: `view found = co_await client.inspect(key)`. */
    awaitable<view> inspect(std::string_view key);

    /* Asks, as above: `status code = co_await client.check_fence(key, fence)`. */
    awaitable<status> check_fence(std::string_view key, std::uint64_t fence);

    /* Waits, as above: `status code = co_await client.ready(30s)`. */
    awaitable<status> ready(duration timeout);

    /*
     * Runs a task up to its first wait, also while the client closes, and returns it. An exception
     * until then leaves start; a later one is handled as in rethrow.
     */
    task start(task begun);

    /* Returns why the last call on this client, or its objects, was refused; or "". */
    const char *error() const noexcept {
        return !core_                      ? "the client is empty"
               : core_->refusal != nullptr ? core_->refusal
               : core_->client == nullptr  ? message(status::closed)
                                           : redlock_client_error(core_->client);
    }

    /* Returns the nodes, and those that are joining: redlock_client_nodes. */
    std::vector<node_info> nodes() const;

    /* Change the list of nodes: redlock_client_change_nodes, _commit_nodes, _abandon_nodes. */
    [[nodiscard]] status change_nodes(const std::vector<std::string> &nodes) {
        const std::vector<const char *> uris = detail::pointers(nodes);
        return ask([&] {
            return detail::has_nul(nodes)
                       ? static_cast<redlock_status>(
                             core_->refuse(status::invalid, "nodes: a URI has a NUL byte"))
                       : redlock_client_change_nodes(native(), uris.data(), uris.size());
        });
    }
    [[nodiscard]] status commit_nodes() noexcept {
        return ask([this] { return redlock_client_commit_nodes(native()); });
    }
    [[nodiscard]] status abandon_nodes() noexcept {
        return ask([this] { return redlock_client_abandon_nodes(native()); });
    }

    /* Returns the statistics: redlock_client_stats. All 0 for a closed client. */
    redlock_stats stats() const noexcept {
        redlock_stats found{};
        found.size = sizeof(found);
        redlock_client_stats(native(), &found);
        return found;
    }

    /* Returns those of a node, by its index in nodes(): redlock_client_node_stats. */
    std::optional<redlock_node_stats> node_stats(std::size_t index) const noexcept {
        redlock_node_stats found{};
        found.size = sizeof(found);
        bool is_there = redlock_client_node_stats(native(), index, &found) == REDLOCK_OK;
        return is_there ? std::optional(found) : std::nullopt;
    }

    /* Returns the statistics in the text format of Prometheus: redlock_stats_write. */
    std::string stats_text() const;

    /*
     * Throws the stored exception, if there is one, and stores it no longer.
     *
     * An exception that leaves a callable, hook or task goes to options::on_exception. Without
     * that, the client stores the first one, and breaks the loop (event_base_loopbreak), so that
     *     event_base_dispatch(base);
     *     client.rethrow();
     * throws it where the loop was run. Until then the loop breaks after each callable or hook. Of
     * a client on a redlock_loop, redlock_loop_run returns (redlock_loop_wake); a loop around that
     * goes on. An exception that can no longer be thrown, because the client object is destroyed,
     * ends the program by std::terminate, except during stack unwinding.
     */
    void rethrow() {
        if (core_ && core_->exception != nullptr) {
            std::rethrow_exception(std::exchange(core_->exception, nullptr));
        }
    }

    /* Returns the client for redlock.h, not to be closed there; NULL when closed. */
    redlock_client *native() const noexcept {
        return core_ ? core_->client : nullptr;
    }

  private:
    template <class Create, class Loop>
    static client create_by(Create create, Loop *loop, void (*break_loop)(void *),
                            const options &chosen, redlock::error *why);

    void end() noexcept {
        close();
        if (!core_) {
            return;
        }
        core_->is_owned = false;
        std::exception_ptr kept = std::exchange(core_->exception, nullptr);
        if (kept != nullptr && std::uncaught_exceptions() == 0) {
            detail::die(kept);
        }
    }

    /* Refuses a call of an empty client, or of one that is closing. */
    status check() const noexcept {
        return !core_              ? status::invalid
               : core_->is_closing ? core_->refuse(status::closed, message(status::closed))
                                   : status::ok;
    }

    /* Refuses a negative duration, too. */
    status check(duration timeout) const noexcept {
        status code = check();
        return code == status::ok && timeout.is_negative()
                   ? core_->refuse(status::invalid, "timeout: must not be negative")
                   : code;
    }

    template <class F> status ask(F &&call) noexcept {
        status code = check();
        if (code == status::ok) {
            core_->refusal = nullptr;
            code = static_cast<status>(call());
        }
        return code;
    }

    status begin(const request &what, detail::tenure *made) noexcept;

    /* Creates the block of a call, and begins the call. */
    template <class Call, class S, class F>
    status call_by(S &&sink, F &&begin_call, detail::counted<Call> *kept = nullptr) {
        status code = check();
        if (code != status::ok) {
            return code;
        }
        detail::counted<Call> made(new (std::nothrow) Call(core_.get(), std::forward<S>(sink)));
        if (!made) {
            return core_->refuse(status::no_memory, "out of memory");
        }
        if (kept != nullptr) {
            *kept = made;
        }
        return detail::given(detail::counted<detail::block>(made.get()), begin_call(made.get()));
    }

    template <class T, class Call, class F> awaitable<T> await_call(F &&begin_call);

    detail::counted<detail::core> core_{};
};

/* ------------------------------------------------------------------------------------ internals */

namespace detail {

template <class Sink, class Lost>
void tenure_with<Sink, Lost>::report_acquired(acquisition &&result) noexcept {
    home->guard([this, &result] { (*sink)(std::move(result)); });
    if constexpr (!is_mailbox<Sink>) {
        sink.reset();
    }
}

template <class Sink>
void call_with<Sink>::on_view(redlock_status code, const redlock_view *found, void *arg) noexcept {
    view copied{status::no_memory}; /* unless the copy is made: it may throw bad_alloc */
    (void)caught([&] { copied = copy(code, found); });
    end(arg, std::move(copied));
}

template <class Sink>
void call_with<Sink>::on_drained(std::uint64_t unreleased, void *arg) noexcept {
    counted<core> home = static_cast<call_with *>(arg)->home;
    home->users--; /* the library's client */
    closed(home.get());
    end(arg, unreleased);
}

inline void tenure::on_acquired(redlock_lock *handle, redlock_status code, void *arg) noexcept {
    counted<tenure> self(static_cast<tenure *>(arg));
    self->handle = handle;
    self->is_completed = true;
    self->report_acquired(acquisition(self.get(), static_cast<status>(code)));
    if (code != REDLOCK_OK) {
        self->end();
    }
}

inline void tenure::on_loss(redlock_lock *handle, redlock_status code, void *arg) noexcept {
    counted<tenure> self(static_cast<tenure *>(arg));
    self->loss = static_cast<status>(code);
    if (!self->is_let_go) {
        self->report_lost(outcome(handle, code));
    }
    self->wake(self->loss);
}

inline void tenure::on_gone(redlock_lock *, redlock_status, void *arg) noexcept {
    counted<tenure> self(static_cast<tenure *>(arg));
    self->users--;
    self->wake(status::canceled);
}

} // namespace detail

inline client client::create(event_base *base, const options &chosen, redlock::error *why) {
    const auto break_loop = [](void *loop) {
        detail::event_base_loopbreak(static_cast<event_base *>(loop));
    };
    return create_by(redlock_client_create, base, break_loop, chosen, why);
}

inline client client::create_on(redlock_loop *loop, const options &chosen, redlock::error *why) {
    const auto break_loop = [](void *run) { redlock_loop_wake(static_cast<redlock_loop *>(run)); };
    return create_by(redlock_client_create_on, loop, break_loop, chosen, why);
}

template <class Create, class Loop>
client client::create_by(Create create, Loop *loop, void (*break_loop)(void *),
                         const options &chosen, redlock::error *why) {
    client made;
    detail::counted<detail::core> core(new detail::core());
    detail::c_options given(chosen);
    redlock_error refusal{};
    if (given.refusal != nullptr) {
        if (why != nullptr) {
            *why = {status::invalid, given.refusal};
        }
        return made;
    }
    core->loop = loop;
    core->break_loop = break_loop;
    core->log = chosen.log;
    core->trace = chosen.trace;
    core->on_exception = chosen.on_exception;
    given.set_hooks(core.get());
    if (create(loop, &given.raw, &core->client, &refusal) == REDLOCK_OK) {
        core->users++; /* the library's client */
        made.core_ = std::move(core);
    }
    if (why != nullptr) {
        *why = {static_cast<status>(refusal.status), refusal.message};
    }
    return made;
}

inline status client::begin(const request &what, detail::tenure *made) noexcept {
    status code = check();
    if (code != status::ok) {
        return code;
    }
    if (made == nullptr) {
        return core_->refuse(status::no_memory, "out of memory");
    }
    detail::c_request given(what);
    if (given.refusal != nullptr) {
        return core_->refuse(status::invalid, given.refusal);
    }
    given.raw.on_lost = detail::tenure::on_loss;
    given.raw.on_lost_arg = made;
    core_->refusal = nullptr;
    code = static_cast<status>(
        redlock_acquire(native(), &given.raw, detail::tenure::on_acquired, made, &made->handle));
    if (code == status::ok) {
        made->enlist();
    }
    return code;
}

inline std::vector<node_info> client::nodes() const {
    redlock_node_info found[REDLOCK_MAX_NODES];
    std::size_t count = redlock_client_nodes(native(), found, REDLOCK_MAX_NODES);
    std::vector<node_info> copies;
    for (std::size_t i = 0; i < count && i < REDLOCK_MAX_NODES; i++) {
        const redlock_node_info &node = found[i];
        copies.push_back({node.node, node.connected, node.reason, node.commands, node.bytes,
                          node.pending_releases, node.disconnected, node.trusted, node.distrust,
                          detail::chrono_ms(node.distrust_ms), node.joining, node.leaving});
    }
    return copies;
}

inline std::string client::stats_text() const {
    std::string text;
    std::exception_ptr thrown;
    std::function<void(std::string_view)> add = [&](std::string_view piece) noexcept {
        std::exception_ptr now = detail::caught([&] { text.append(piece); });
        thrown = thrown != nullptr ? thrown : now;
    };
    redlock_stats_write(native(), detail::on_text, &add);
    if (thrown != nullptr) {
        std::rethrow_exception(thrown);
    }
    return text;
}

/* Returns a quantile (0 to 1): redlock_histogram_quantile_ns. */
inline std::chrono::nanoseconds quantile(const redlock_histogram &durations,
                                         double quantile) noexcept {
    constexpr auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
    const std::uint64_t found = redlock_histogram_quantile_ns(&durations, quantile);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(found < most ? found : most));
}

} // namespace redlock

#endif
