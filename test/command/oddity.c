#include "oddity.h"

#include "peer.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void answer_by_command(struct peer_link *link, const struct command *command, void *arg) {
    const struct oddity_answer *answers = arg;

    while (answers->command != NULL && !command_is(command, answers->command, NULL)) {
        answers++;
    }
    peer_say(link, answers->answer);
}

/* Begins an answer of 1 GB, which comes byte by byte. */
static void answer_slowly(struct peer_link *link, const struct command *command, void *arg) {
    (void)command;
    (void)arg;
    peer_say(link, "$1000000000\r\n");
    peer_pour(link, "x", 1);
}

static struct oddity start(peer_answer *answer, const struct oddity_answer *answers) {
    struct event_base *base = event_base_new();
    struct peer *peer = peer_listen(base, answer, (void *)(uintptr_t)answers);
    struct oddity oddity = {.port = peer_port(peer)};
    pid_t parent = getpid();

    oddity.pid = fork();
    assert_true(oddity.pid >= 0);
    if (oddity.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && event_reinit(base) == 0) {
            event_base_dispatch(base);
        }
        _exit(EXIT_FAILURE);
    }
    peer_destroy(peer);
    event_base_free(base);
    return oddity;
}

struct oddity oddity_start_slow(void) {
    return start(answer_slowly, NULL);
}

struct oddity oddity_start(const char *answer) {
    return oddity_start_with(&(struct oddity_answer){NULL, answer});
}

struct oddity oddity_start_with(const struct oddity_answer *answers) {
    return start(answer_by_command, answers);
}

void oddity_end(const struct oddity *oddity) {
    kill(oddity->pid, SIGKILL);
    waitpid(oddity->pid, NULL, 0);
}
