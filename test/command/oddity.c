#include "oddity.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The listener, and the connections. */
#define SOCKETS 64

#define DRIP_MS 20

/* Begins an answer of 1 GB. Returns false once the client is gone. */
static bool drip(int socket) {
    const char *part = "$1000000000\r\n";

    while (send(socket, part, strlen(part), MSG_NOSIGNAL) >= 0) {
        part = "x";
        poll(NULL, 0, DRIP_MS);
    }
    return false;
}

/* Returns whether a RESP command, "*1\r\n$4\r\nPING\r\n", begins with a word. */
static bool is_command(const char *text, const char *word) {
    for (int lines = 0; lines < 2 && text != NULL; lines++) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL && strncasecmp(text, word, strlen(word)) == 0 && text[strlen(word)] == '\r';
}

static const char *answer_to(const struct oddity_answer *answers, const char *text) {
    while (answers->command != NULL && !is_command(text, answers->command)) {
        answers++;
    }
    return answers->answer;
}

/*
 * Answers each received command, identified by its '*'. Returns whether the client is still there.
 */
static bool serve(int socket, const struct oddity_answer *answers) {
    char bytes[4096];
    ssize_t length = read(socket, bytes, sizeof(bytes) - 1);

    if (answers->answer == NULL) {
        return length > 0 && drip(socket);
    }
    bytes[length > 0 ? length : 0] = '\0';
    for (ssize_t i = 0; i < length; i++) {
        if (bytes[i] == '*') {
            const char *answer = answer_to(answers, &bytes[i]);

            if (send(socket, answer, strlen(answer), MSG_NOSIGNAL) < 0) {
                return false;
            }
        }
    }
    return length > 0;
}

static _Noreturn void serve_all(int listener, const struct oddity_answer *answers) {
    struct pollfd polled[SOCKETS] = {{.fd = listener, .events = POLLIN}};

    for (nfds_t i = 1; i < SOCKETS; i++) {
        polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    while (poll(polled, SOCKETS, -1) > 0) {
        for (nfds_t i = 1; i < SOCKETS; i++) {
            if (polled[i].fd < 0 && (polled[0].revents & POLLIN)) {
                polled[i].fd = accept(listener, NULL, NULL);
                polled[0].revents = 0;
            } else if (polled[i].fd >= 0 && polled[i].revents != 0 &&
                       !serve(polled[i].fd, answers)) {
                close(polled[i].fd);
                polled[i].fd = -1;
            }
        }
    }
    _exit(EXIT_FAILURE);
}

struct oddity oddity_start_slow(void) {
    return oddity_start(NULL);
}

struct oddity oddity_start(const char *answer) {
    return oddity_start_with(&(struct oddity_answer){NULL, answer});
}

struct oddity oddity_start_with(const struct oddity_answer *answers) {
    struct oddity oddity;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t parent = getpid();

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, SOCKETS), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    oddity.port = ntohs(address.sin_port);
    oddity.pid = fork();
    assert_true(oddity.pid >= 0);
    if (oddity.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        serve_all(listener, answers);
    }
    close(listener);
    return oddity;
}

void oddity_end(const struct oddity *oddity) {
    kill(oddity->pid, SIGKILL);
    waitpid(oddity->pid, NULL, 0);
}
