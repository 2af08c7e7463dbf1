/*
 * Statuses and durations of the headers for C++17 and later, which include this one. See
 * lib/doc/cpp.md.
 */
#ifndef REDLOCK_STATUS_HPP
#define REDLOCK_STATUS_HPP

#if __cplusplus < 201703L
#error "the C++ headers of redlock need C++17"
#endif

#include "../redlock.h"

#include <chrono>
#include <cstdint>
#include <ratio>
#include <string>
#include <system_error>
#include <type_traits>

namespace redlock {

/* ------------------------------------------------------------------------------------- statuses */

/* The statuses of redlock.h. Converts to std::error_code; status::ok is no error. */
enum class status : int {
    ok = REDLOCK_OK,
    invalid = REDLOCK_EINVAL,
    no_memory = REDLOCK_ENOMEM,
    held = REDLOCK_EHELD,
    no_quorum = REDLOCK_ENOQUORUM,
    expired = REDLOCK_EEXPIRED,
    lost = REDLOCK_ELOST,
    canceled = REDLOCK_ECANCELED,
    closed = REDLOCK_ECLOSED,
    busy = REDLOCK_EBUSY,
    system = REDLOCK_ESYSTEM,
    no_access = REDLOCK_EACCESS
};

/* Returns one sentence for `code`. Static storage. */
inline const char *message(status code) noexcept {
    return redlock_strerror(static_cast<redlock_status>(code));
}

/* Returns the name of `code`, such as "REDLOCK_EHELD". Static storage. */
inline const char *name(status code) noexcept {
    return redlock_status_name(static_cast<redlock_status>(code));
}

/* Returns whether a request that ended with `code` may succeed later. */
inline bool is_retryable(status code) noexcept {
    return redlock_is_retryable(static_cast<redlock_status>(code));
}

/* Returns the category "redlock" of std::error_code. */
inline const std::error_category &category() noexcept {
    struct category_of_statuses final : std::error_category {
        const char *name() const noexcept override {
            return "redlock";
        }
        std::string message(int code) const override {
            return redlock_strerror(static_cast<redlock_status>(code));
        }
    };
    static const category_of_statuses instance;
    return instance;
}

inline std::error_code make_error_code(status code) noexcept {
    return {static_cast<int>(code), category()};
}

/* A refusal or a failure, explained. Converts to its status. */
struct error {
    status code = status::ok;
    std::string message{}; /* one sentence */

    operator status() const noexcept {
        return code;
    }
};

/* Returns the version of the running library, "major.minor.patch". Static storage. */
inline const char *version() noexcept {
    return redlock_version();
}

/* ------------------------------------------------------------------------------------ durations */

/*
 * A duration in whole milliseconds; others do not compile (use std::chrono::ceil). One beyond 64
 * bits is `forever`; as a TTL it is refused. Negative durations are refused.
 */
class duration {
  public:
    constexpr duration() noexcept = default;

    template <class Rep, class Period,
              class = std::enable_if_t<std::is_integral_v<Rep> &&
                                       std::ratio_divide<Period, std::milli>::den == 1>>
    constexpr duration(std::chrono::duration<Rep, Period> length) noexcept
        : is_negative_(length < length.zero()) {
        constexpr auto factor =
            static_cast<std::uint64_t>(std::ratio_divide<Period, std::milli>::num);
        const auto count = is_negative_ ? 0 : static_cast<std::uint64_t>(length.count());
        ms_ = count > UINT64_MAX / factor ? UINT64_MAX : count * factor;
    }

    constexpr std::uint64_t ms() const noexcept {
        return ms_;
    }
    constexpr bool is_negative() const noexcept {
        return is_negative_;
    }

  private:
    std::uint64_t ms_ = 0;
    bool is_negative_ = false;
};

/* Value of request::wait: no limit. */
inline constexpr duration forever = std::chrono::hours::max();

namespace detail {

/* Returns milliseconds of the library, limited to the range. */
constexpr std::chrono::milliseconds chrono_ms(std::uint64_t count) noexcept {
    using std::chrono::milliseconds;
    constexpr auto most = static_cast<std::uint64_t>(milliseconds::max().count());
    return milliseconds(static_cast<milliseconds::rep>(count < most ? count : most));
}

} // namespace detail

} // namespace redlock

template <> struct std::is_error_code_enum<redlock::status> : std::true_type {};

#endif
