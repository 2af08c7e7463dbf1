/*
 * Throwaway Redis masters: real redis-server processes (or $REDLOCK_SERVER) on free ports, in a
 * temporary folder, without persistence unless requested. They end with masters_finish, and at the
 * latest with the process that started them, however it ends. With REDLOCK_TEST_MINIMAL_USER in the
 * environment their URIs log in as a user with only the rights for plain locks in
 * lib/doc/operating.md; with the value "readers", also with those for readers and writers. All
 * functions block: they are for tests, the benchmark and the demo, not for callbacks of a loop in
 * which time matters.
 */
#ifndef REDLOCK_TEST_MASTERS_H
#define REDLOCK_TEST_MASTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct masters;

/*
 * Starts `count` masters and waits until each answers PING (an error counts: a password may be
 * required). `arguments` is a NULL-terminated list of further redis-server arguments for all of
 * them, such as {"--requirepass", "secret", NULL}; NULL for none. Returns NULL, after a message on
 * stderr, when they cannot be started.
 */
struct masters *masters_start(size_t count, const char *const *arguments);

/* The differences from plain masters; a zero field means no difference. */
struct masters_options {
    const char *const *arguments; /* as above */
    const char *const *hosts;     /* an address for each master to listen on; NULL: 127.0.0.1 */
    bool tls; /* the port speaks only TLS; URIs are rediss://; `arguments` configure it */
    /* an append-only file, synced at every write, keeps the data across restarts */
    bool persistent;

    /*
     * Runs in each child before it becomes the server, at every start, to enter a namespace or to
     * set the environment. Returns 0; nonzero with errno set when the server cannot be started.
     */
    int (*prepare)(size_t index, void *arg);
    void *prepare_arg;
};

/* Starts masters as masters_start does; `hosts` must live as long as the masters. */
struct masters *masters_start_with(size_t count, const struct masters_options *options);

/* Ends all masters by pid, waits for their end, and removes the folder. Takes NULL. */
void masters_finish(struct masters *masters);

size_t masters_count(const struct masters *masters);
int masters_port(const struct masters *masters, size_t index);
pid_t masters_pid(const struct masters *masters, size_t index); /* 0 when killed */

/* Returns "127.0.0.1:PORT". */
const char *masters_address(const struct masters *masters, size_t index);

/* Return "redis://127.0.0.1:PORT", and an array of all; both live as long as the masters. */
const char *masters_uri(const struct masters *masters, size_t index);
const char *const *masters_uris(const struct masters *masters);

/* Returns "unix:///tmp/.../master-0.sock": every master also listens on a socket. */
const char *masters_unix_uri(const struct masters *masters, size_t index);

void masters_kill(struct masters *masters, size_t index);    /* sends SIGKILL; waits for its end */
void masters_restart(struct masters *masters, size_t index); /* same port; waits for PING */
/* Removes the persisted data of a killed master, so that it restarts empty. */
void masters_forget(struct masters *masters, size_t index);
/* sends SIGSTOP; waits until it has stopped */
void masters_stop(struct masters *masters, size_t index);
void masters_continue(struct masters *masters, size_t index); /* sends SIGCONT */
/* Apply masters_stop and masters_continue to the masters `from` to `to - 1`. */
void masters_stop_range(struct masters *masters, size_t from, size_t to);
void masters_continue_range(struct masters *masters, size_t from, size_t to);

/*
 * Sends one command on a connection of its own (with the password, if one was given among the
 * arguments) and returns the answer as a string that the caller frees: a bulk or status as it is,
 * an integer in decimal, nil as NULL, an error as "-TEXT", an array as its elements separated by
 * newlines. `format` is that of hiredis' redisCommand. Exits the process with a message when the
 * master does not answer within a minute.
 */
char *masters_query(struct masters *masters, size_t index, const char *format, ...);

/* Does what masters_query does, for integer answers. */
long long masters_query_integer(struct masters *masters, size_t index, const char *format, ...);

#endif
