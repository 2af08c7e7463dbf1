/*
 * Leads while it can: of all processes that run this for one key, one at a time does the work, and
 * another takes over when it has ended, hangs or has died. With coroutines of C++20; see
 * lib/doc/cpp.md.
 *
 *     c++ -std=c++20 -o leader leader.cpp $(pkg-config --cflags --libs redlock libevent_core)
 *     ./leader KEY TERMS redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <event2/event.h>
#include <redlock/coroutines.hpp>

using namespace std::chrono_literals;

/* Lets a coroutine await a timer: `co_await timer(base, 100ms)`. */
class timer {
  public:
    timer(event_base *base, std::chrono::milliseconds length)
        : event_(evtimer_new(base, on_time, this)) {
        const auto ms = length.count();
        const timeval time = {ms / 1000, static_cast<suseconds_t>(ms % 1000 * 1000)};
        if (event_ == nullptr || evtimer_add(event_, &time) != 0) {
            std::abort();
        }
    }
    timer(const timer &) = delete;
    timer &operator=(const timer &) = delete;
    ~timer() { /* also with a coroutine that is destroyed while it waits */
        event_free(event_);
    }

    bool await_ready() const noexcept {
        return false;
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
    }
    void await_resume() const noexcept {
    }

  private:
    static void on_time(evutil_socket_t, short, void *arg) {
        static_cast<timer *>(arg)->waiter_.resume();
    }

    event *event_;
    std::coroutine_handle<> waiter_{};
};

/* So many times: waits to be the leader, and works until that is done or the lock is lost. */
static redlock::task lead(event_base *base, redlock::client &client, std::string key, int terms) {
    while (terms > 0) {
        /* Masters that are new, or were restarted, grant nothing for max_ttl: 30 s. */
        redlock::acquisition got = co_await client.acquire(
            {.key = key, .wait = 35s, .watchdog = true, .fenced = true},
            redlock::on_lost{[](const redlock::outcome &loss) { std::puts(message(loss)); }});
        if (!got) {
            std::puts(got.explain().c_str());
            if (!is_retryable(got.code())) {
                break;
            }
            continue;
        }
        redlock::lock lock = *std::move(got); /* released at the latest where this scope is left */

        /* The work: short steps, each begun under the lock, and each with its fence. */
        for (int step = 1; step <= 3 && lock.validity() > 0ms; step++) {
            std::printf("step %d with fence %" PRIu64 "\n", step, lock.fence());
            co_await timer(base, 50ms);
        }
        if (co_await lock.release() == redlock::status::ok) { /* it was held to the end */
            std::puts("done");
            terms--;
        }
    }
    client.close(); /* then the loop has nothing left to do, and ends */
}

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s KEY TERMS NODE...\n", argv[0]);
        return 2;
    }
    event_base *base = event_base_new();
    redlock::error error;
    redlock::client client =
        redlock::client::create(base, {.nodes = {argv + 3, argv + argc}}, &error);
    if (!client) {
        std::fprintf(stderr, "%s\n", error.message.c_str());
        return EXIT_FAILURE;
    }
    redlock::task leader = client.start(lead(base, client, argv[1], std::atoi(argv[2])));
    event_base_dispatch(base);
    client.rethrow(); /* the exception of a callable or task, if one has broken the loop */
    event_base_free(base);
    return leader.done() ? EXIT_SUCCESS : EXIT_FAILURE;
}
