/*
 * Options of clients and requests, for redlock.hpp and redlock/mutex.hpp, which include this
 * header. See lib/doc/cpp.md.
 */
#ifndef REDLOCK_OPTIONS_HPP
#define REDLOCK_OPTIONS_HPP

#include "status.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <ratio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock {

namespace detail {

inline constexpr redlock_options options_init = REDLOCK_OPTIONS_INIT;
inline constexpr redlock_request request_init = REDLOCK_REQUEST_INIT;

/* Returns a default of redlock.h as a duration. */
constexpr duration ms(std::uint64_t count) noexcept {
    return std::chrono::duration<std::uint64_t, std::milli>(count);
}

} // namespace detail

/* ------------------------------------------------------------------------- options and requests */

enum class log_level {
    debug = REDLOCK_LOG_DEBUG,
    info = REDLOCK_LOG_INFO,
    warn = REDLOCK_LOG_WARN,
    error = REDLOCK_LOG_ERROR
};

enum class guards {
    on = REDLOCK_GUARDS_ON,
    lenient = REDLOCK_GUARDS_LENIENT,
    off = REDLOCK_GUARDS_OFF
};

enum class handover { push = REDLOCK_HANDOVER_PUSH, confirm = REDLOCK_HANDOVER_CONFIRM };

enum class mode { exclusive = REDLOCK_EXCLUSIVE, reader = REDLOCK_READER, writer = REDLOCK_WRITER };

/*
 * Options of a client: the fields of redlock_options without units, with the same defaults. An
 * empty string is none; one with a NUL byte is refused.
 */
struct options {
    std::vector<std::string> nodes{}; /* URIs of the independent masters */
    duration node_timeout = detail::ms(detail::options_init.node_timeout_ms);
    duration stall_timeout = detail::ms(detail::options_init.stall_timeout_ms);
    duration max_ttl = detail::ms(detail::options_init.max_ttl_ms);
    double drift = detail::options_init.drift;
    duration retry_delay = detail::ms(detail::options_init.retry_delay_ms);
    duration retry_delay_max = detail::ms(detail::options_init.retry_delay_max_ms);
    duration reconnect_delay = detail::ms(detail::options_init.reconnect_delay_ms);
    duration reconnect_delay_max = detail::ms(detail::options_init.reconnect_delay_max_ms);
    std::uint32_t max_commands = detail::options_init.max_commands;
    std::size_t max_bytes = detail::options_init.max_bytes;
    std::string name = detail::options_init.name;
    redlock::log_level log_level = static_cast<redlock::log_level>(detail::options_init.log_level);
    const redlock_allocator *allocator = nullptr; /* of the library; not of this header */
    redlock::guards guards = static_cast<redlock::guards>(detail::options_init.guards);
    std::string tls_ca_file{};
    std::string tls_ca_path{};
    std::string tls_cert_file{};
    std::string tls_key_file{};
    duration fence_idle = detail::ms(detail::options_init.fence_idle_ms);
    std::string owner{};
    duration close_timeout = detail::ms(detail::options_init.close_timeout_ms);
    redlock::handover handover = static_cast<redlock::handover>(detail::options_init.handover);
    std::uint32_t max_local_handoffs = detail::options_init.max_local_handoffs;
    std::uint32_t max_unsent = detail::options_init.max_unsent;
    duration idle_close = detail::ms(detail::options_init.idle_close_ms);

    /* Hooks, called until the client is closed. Their arguments are valid during the call. */
    std::function<void(redlock::log_level level, std::string_view line)> log{};
    std::function<void(const redlock_event &event)> trace{};

    /*
     * Receives each exception that left a callable, hook or task. Must not throw. Without it: see
     * client::rethrow, shared_client.
     */
    std::function<void(std::exception_ptr exception)> on_exception{};
};

/* One acquisition: redlock_request, with the same defaults. */
struct request {
    std::string_view key{};
    duration ttl = detail::ms(detail::request_init.ttl_ms);
    duration wait{}; /* `forever`: no limit */
    std::uint32_t retries = 0;
    duration min_validity{};
    bool watchdog = false;
    duration max_hold{};
    bool fenced = false;
    std::vector<std::string_view> keys{}; /* of a lock of several keys, instead of `key` */
    duration min_hold{};
    duration lock_delay{};
    std::uint32_t wait_replicas = 0;
    std::uint32_t permits = 0;
    redlock::mode mode = redlock::mode::exclusive;
    bool watch_key = false;
};

/*
 * A callable for the loss of a lock, passed beside a request: redlock_request.on_lost. Called with
 * an outcome (of a mutex: an error), or its status, unless the handle was released or destroyed.
 */
template <class F> struct on_lost { F call; };
template <class F> on_lost(F) -> on_lost<F>;

/* ------------------------------------------------------------------------------------ internals */

namespace detail {

/* Ends the program as an uncaught exception does, with its message. */
[[noreturn]] inline void die(const std::exception_ptr &exception) noexcept {
    std::rethrow_exception(exception);
}

/* Calls `f`, and returns the exception that left it, or none. */
template <class F> std::exception_ptr caught(F &&f) noexcept {
#if defined(__cpp_exceptions)
    try {
        f();
    } catch (...) {
        return std::current_exception();
    }
#else
    f();
#endif
    return nullptr;
}

/* Returns a text that is a C string when its length is 0. */
inline const char *bytes(std::string_view text) noexcept {
    return text.empty() ? "" : text.data();
}

inline const char *or_null(const std::string &text) noexcept {
    return text.empty() ? nullptr : text.c_str();
}

/* Returns whether a text has a NUL byte, and cannot be a C string. */
inline bool has_nul(const std::vector<std::string> &texts) noexcept {
    for (const std::string &text : texts) {
        if (text.find('\0') != std::string::npos) {
            return true;
        }
    }
    return false;
}

inline std::vector<const char *> pointers(const std::vector<std::string> &texts) {
    std::vector<const char *> copies;
    copies.reserve(texts.size());
    for (const std::string &text : texts) {
        copies.push_back(text.c_str());
    }
    return copies;
}

/* Options as a struct of C, with the texts of the options. */
struct c_options {
    explicit c_options(const options &chosen) : nodes(pointers(chosen.nodes)) {
        const std::pair<std::uint64_t *, const duration *> durations[] = {
            {&raw.node_timeout_ms, &chosen.node_timeout},
            {&raw.stall_timeout_ms, &chosen.stall_timeout},
            {&raw.max_ttl_ms, &chosen.max_ttl},
            {&raw.retry_delay_ms, &chosen.retry_delay},
            {&raw.retry_delay_max_ms, &chosen.retry_delay_max},
            {&raw.reconnect_delay_ms, &chosen.reconnect_delay},
            {&raw.reconnect_delay_max_ms, &chosen.reconnect_delay_max},
            {&raw.fence_idle_ms, &chosen.fence_idle},
            {&raw.close_timeout_ms, &chosen.close_timeout},
            {&raw.idle_close_ms, &chosen.idle_close},
        };
        for (const auto &[to, from] : durations) {
            if (from->is_negative()) {
                refusal = "a duration of the options is negative";
                return;
            }
            *to = from->ms();
        }
        if (has_nul(chosen.nodes) ||
            has_nul({chosen.name, chosen.owner, chosen.tls_ca_file, chosen.tls_ca_path,
                     chosen.tls_cert_file, chosen.tls_key_file})) {
            refusal = "a string of the options has a NUL byte";
            return;
        }
        raw.nodes = nodes.data();
        raw.node_count = nodes.size();
        raw.drift = chosen.drift;
        raw.max_commands = chosen.max_commands;
        raw.max_bytes = chosen.max_bytes;
        raw.name = or_null(chosen.name);
        raw.log_level = static_cast<redlock_log_level>(chosen.log_level);
        raw.allocator = chosen.allocator;
        raw.guards = static_cast<redlock_guards>(chosen.guards);
        raw.tls_ca_file = or_null(chosen.tls_ca_file);
        raw.tls_ca_path = or_null(chosen.tls_ca_path);
        raw.tls_cert_file = or_null(chosen.tls_cert_file);
        raw.tls_key_file = or_null(chosen.tls_key_file);
        raw.owner = or_null(chosen.owner);
        raw.handover = static_cast<redlock_handover>(chosen.handover);
        raw.max_local_handoffs = chosen.max_local_handoffs;
        raw.max_unsent = chosen.max_unsent;
    }
    c_options(const c_options &) = delete;
    c_options &operator=(const c_options &) = delete;

    /* Sets the hooks that `home` has; its `guard` calls them. */
    template <class Home> void set_hooks(Home *home) noexcept {
        if (home->log) {
            raw.log_arg = home;
            raw.log = [](redlock_log_level level, const char *line, void *arg) {
                auto *self = static_cast<Home *>(arg);
                self->guard([&] { self->log(static_cast<redlock::log_level>(level), line); });
            };
        }
        if (home->trace) {
            raw.trace_arg = home;
            raw.trace = [](const redlock_event *event, void *arg) {
                auto *self = static_cast<Home *>(arg);
                self->guard([&] { self->trace(*event); });
            };
        }
    }

    std::vector<const char *> nodes;
    redlock_options raw = REDLOCK_OPTIONS_INIT;
    const char *refusal = nullptr; /* why the struct cannot have these options */
};

/* A request as a struct of C, with the keys of the request. */
struct c_request {
    explicit c_request(const request &what) noexcept {
        if (what.ttl.is_negative() || what.wait.is_negative() || what.min_validity.is_negative() ||
            what.max_hold.is_negative() || what.min_hold.is_negative() ||
            what.lock_delay.is_negative()) {
            refusal = "a duration of the request is negative";
            return;
        }
        if (what.keys.size() > REDLOCK_MAX_KEYS) {
            refusal = "keys: too many, at most REDLOCK_MAX_KEYS";
            return;
        }
        for (std::size_t i = 0; i < what.keys.size(); i++) {
            keys[i] = bytes(what.keys[i]);
            lengths[i] = what.keys[i].size();
        }
        raw.key = what.keys.empty() || !what.key.empty() ? bytes(what.key) : nullptr;
        raw.key_length = what.key.size();
        raw.ttl_ms = what.ttl.ms();
        raw.wait_ms = what.wait.ms();
        raw.retries = what.retries;
        raw.min_validity_ms = what.min_validity.ms();
        raw.watchdog = what.watchdog;
        raw.max_hold_ms = what.max_hold.ms();
        raw.fenced = what.fenced;
        raw.keys = what.keys.empty() ? nullptr : keys;
        raw.key_lengths = what.keys.empty() ? nullptr : lengths;
        raw.key_count = what.keys.size();
        raw.min_hold_ms = what.min_hold.ms();
        raw.lock_delay_ms = what.lock_delay.ms();
        raw.wait_replicas = what.wait_replicas;
        raw.permits = what.permits;
        raw.mode = static_cast<redlock_mode>(what.mode);
        raw.watch_key = what.watch_key;
    }
    c_request(const c_request &) = delete;
    c_request &operator=(const c_request &) = delete;

    redlock_request raw = REDLOCK_REQUEST_INIT;
    const char *keys[REDLOCK_MAX_KEYS];
    std::size_t lengths[REDLOCK_MAX_KEYS];
    const char *refusal = nullptr; /* why the struct cannot have this request */
};

} // namespace detail

} // namespace redlock

#endif
