/*
 * Each master is a child process with a folder of its own for its log, its Unix socket and all
 * files that it writes, so that nothing is left after the child has ended and the folder is
 * removed.
 *
 * A master's port stays reserved as long as the masters live, even while the master is killed.
 *
 * Pings and queries go over the Unix socket, where no other process can answer.
 */
#define _GNU_SOURCE 1 /* close_range */

#include "masters.h"

#include "folder.h"
#include "poll_timeout.h"
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_S 60
/* The kernel limits the path of a socket. */
#define PATH_SIZE sizeof(((struct sockaddr_un *)NULL)->sun_path)

struct master {
    pid_t pid; /* 0: not running */
    int port;
    int reservation; /* the socket that reserves the port; -1: none */
    char address[64];
    char uri[96];
    char socket_path[PATH_SIZE];
    char unix_uri[PATH_SIZE + 32];
    char log_path[PATH_SIZE];
    char data_path[PATH_SIZE]; /* the folder of the server's files */
    const char *host;
};

struct masters {
    LIST_ENTRY(masters) link;
    pid_t owner; /* the process that may end the masters: none of its forks may */
    size_t count;
    struct master *list;
    const char **uris;
    struct masters_options options;
    char **arguments; /* copies of the caller's arguments, NULL-terminated */
    size_t argument_count;
    char folder[FOLDER_SIZE];
};

/* All masters that were started and not finished: exit() must clean them up. */
static LIST_HEAD(, masters) unfinished = LIST_HEAD_INITIALIZER(unfinished);

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void die(const char *format, ...) {
    va_list values;

    fputs("masters: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);

    if (memory == NULL) {
        die("out of memory");
    }
    return memory;
}

static char *copy_string(const char *string, size_t length) {
    char *copy = allocate(length + 1, 1);

    memcpy(copy, string, length);
    return copy;
}

static struct master *at(const struct masters *masters, size_t index) {
    if (index >= masters->count) {
        die("there is no master %zu, only %zu", index, masters->count);
    }
    return &masters->list[index];
}

/* ------------------------------------------------------------------------------- the processes */

static int reserve_port(struct master *master) {
    struct sockaddr_in address;

    master->reservation = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (master->reservation < 0 || port_reserve(master->reservation, &address) != 0) {
        fprintf(stderr, "masters: cannot find a free port: %s\n", strerror(errno));
        return -1;
    }
    master->port = ntohs(address.sin_port);
    return 0;
}

/* Turns a child into the server. Returns only on failure, with errno set. */
static void become_server(const struct masters *masters, const struct master *master,
                          const char **argv) {
    int null = open("/dev/null", O_RDONLY);
    int log = open(master->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    if (null < 0 || log < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return;
    }
    /* The parent may have ended before the child asked for its signal. */
    if (getppid() != masters->owner) {
        _exit(EXIT_FAILURE);
    }
    if (masters->options.prepare != NULL &&
        masters->options.prepare((size_t)(master - masters->list), masters->options.prepare_arg) !=
            0) {
        return;
    }
    /* The test's own connections must not stay open in the server. */
    if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0) {
        return;
    }
    execvp(argv[0], (char *const *)argv);
}

/* Returns the name of redis-server, or of the program to test in its place. */
static const char *server_program(void) {
    const char *chosen = getenv("REDLOCK_SERVER");
    return chosen != NULL && chosen[0] != '\0' ? chosen : "redis-server";
}

static int start_process(const struct masters *masters, struct master *master) {
    char port[16];
    const char *fixed[] = {
        server_program(),
        "--bind",
        master->host,
        "--port",
        masters->options.tls ? "0" : port,
        "--unixsocket",
        master->socket_path,
        "--dir",
        master->data_path,
        "--daemonize",
        "no",
        "--save",
        "",
        "--appendonly",
        masters->options.persistent ? "yes" : "no",
        "--appendfsync",
        "always",
        "--tls-port", /* with TLS only: a server built without TLS does not know the option */
        port};
    size_t fixed_count = sizeof(fixed) / sizeof(fixed[0]) - (masters->options.tls ? 0 : 2);
    const char **argv = allocate(fixed_count + masters->argument_count + 1, sizeof(*argv));

    snprintf(port, sizeof(port), "%d", master->port);
    memcpy(argv, fixed, fixed_count * sizeof(*argv));
    memcpy(argv + fixed_count, masters->arguments, masters->argument_count * sizeof(*argv));

    master->pid = fork();
    if (master->pid == 0) {
        become_server(masters, master, argv);
        dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    free(argv);
    if (master->pid < 0) {
        master->pid = 0;
        fprintf(stderr, "masters: fork: %s\n", strerror(errno));
        return -1;
    }
    return 0;
}

static int wait_for_change(pid_t pid, int flags) {
    int status;

    while (waitpid(pid, &status, flags) < 0) {
        if (errno != EINTR) {
            die("waitpid: %s", strerror(errno));
        }
    }
    return status;
}

static void end_process(struct master *master) {
    if (master->pid > 0) {
        kill(master->pid, SIGKILL);
        wait_for_change(master->pid, 0);
        master->pid = 0;
    }
}

static redisContext *connect_to(const struct master *master) {
    struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
    redisContext *context = redisConnectUnixWithTimeout(master->socket_path, timeout);

    if (context == NULL) {
        die("out of memory");
    }
    if (context->err == 0) {
        redisSetTimeout(context, timeout);
    }
    return context;
}

/*
 * Returns whether any reply comes: a server that requires a password answers with an error. Sets
 * errno to EMFILE when this process is out of descriptors.
 */
static bool answers_ping(const struct master *master) {
    redisContext *context = connect_to(master);
    int cause = context->err == REDIS_ERR_IO ? errno : 0;
    redisReply *reply = context->err == 0 ? redisCommand(context, "PING") : NULL;
    bool answered = reply != NULL;

    if (reply != NULL) {
        freeReplyObject(reply);
    }
    redisFree(context);
    errno = cause;
    return answered;
}

static void print_log(const struct master *master) {
    char line[512];
    FILE *log = fopen(master->log_path, "re");

    if (log == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), log) != NULL) {
        fprintf(stderr, "    %s", line);
    }
    fclose(log);
}

static int wait_until_up(struct master *master) {
    struct poll_timeout wait = {0};

    while (!answers_ping(master)) {
        if (errno == EMFILE) {
            fprintf(stderr, "masters: cannot connect: %s\n", strerror(errno));
            return -1;
        }
        if (waitpid(master->pid, NULL, WNOHANG) == master->pid) {
            master->pid = 0;
            fprintf(stderr, "masters: the server ended while it started; its log:\n");
            print_log(master);
            return -1;
        }
        if (!poll_timeout_wait(&wait, (uint64_t)ANSWER_TIMEOUT_S * 1000)) {
            fprintf(stderr, "masters: the server does not answer PING; its log:\n");
            print_log(master);
            return -1;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------------- start and finish */

static void free_masters(struct masters *masters) {
    for (size_t i = 0; i < masters->argument_count; i++) {
        free(masters->arguments[i]);
    }
    free(masters->arguments);
    free(masters->uris);
    free(masters->list);
    free(masters);
}

void masters_finish(struct masters *masters) {
    if (masters == NULL) {
        return;
    }
    LIST_REMOVE(masters, link);
    for (size_t i = 0; i < masters->count; i++) {
        if (masters->owner == getpid()) {
            end_process(&masters->list[i]);
        }
        if (masters->list[i].reservation >= 0) {
            close(masters->list[i].reservation); /* folder_remove may need the descriptors */
        }
    }
    if (masters->owner == getpid()) {
        if (masters->folder[0] != '\0' && folder_remove(masters->folder) != 0) {
            fprintf(stderr, "masters: cannot remove %s: %s\n", masters->folder, strerror(errno));
        }
    }
    free_masters(masters);
}

static void finish_at_exit(void) {
    while (!LIST_EMPTY(&unfinished)) {
        masters_finish(LIST_FIRST(&unfinished));
    }
}

/* Rights of the user for plain locks in lib/doc/operating.md. */
static const char *const minimal_user[] = {
    "--user", "locker", "on",       ">secret", "~*",       "resetchannels", "+set",  "+get",
    "+del",   "+pttl",  "+pexpire", "+eval",   "+evalsha", "+info",         "+time", NULL};

/* Rights that lib/doc/operating.md adds for readers and writers. */
static const char *const reader_rights[] = {"+zadd",   "+zscore", "+zrem",      "+zremrangebyscore",
                                            "+zcount", "+zrange", "+pexpireat", NULL};

/* Returns whether URIs are to log in as the minimal user. */
static bool wants_minimal_user(void) {
    return getenv("REDLOCK_TEST_MINIMAL_USER") != NULL;
}

static bool wants_readers(void) {
    const char *value = getenv("REDLOCK_TEST_MINIMAL_USER");

    return value != NULL && strcmp(value, "readers") == 0;
}

static size_t count_arguments(const char *const *arguments) {
    size_t count = 0;

    while (arguments != NULL && arguments[count] != NULL) {
        count++;
    }
    return count;
}

static void add_arguments(struct masters *masters, const char *const *arguments) {
    for (size_t count = count_arguments(arguments); count > 0; count--, arguments++) {
        masters->arguments[masters->argument_count++] =
            copy_string(arguments[0], strlen(arguments[0]));
    }
}

static void copy_arguments(struct masters *masters, const char *const *arguments) {
    size_t most =
        count_arguments(arguments) + count_arguments(minimal_user) + count_arguments(reader_rights);

    masters->arguments = allocate(most + 1, sizeof(*masters->arguments));
    add_arguments(masters, arguments);
    if (wants_minimal_user()) {
        add_arguments(masters, minimal_user);
    }
    if (wants_readers()) {
        add_arguments(masters, reader_rights);
    }
}

static struct masters *create_masters(size_t count, const struct masters_options *options) {
    static bool registered;
    struct masters *masters = allocate(1, sizeof(*masters));

    if (!registered && atexit(finish_at_exit) != 0) {
        die("atexit refused");
    }
    registered = true;

    masters->owner = getpid();
    masters->count = count;
    masters->list = allocate(count, sizeof(*masters->list));
    masters->uris = allocate(count, sizeof(*masters->uris));
    for (size_t i = 0; i < count; i++) {
        masters->list[i].reservation = -1;
    }
    masters->options = *options;
    copy_arguments(masters, options->arguments);
    LIST_INSERT_HEAD(&unfinished, masters, link);
    return masters;
}

static int set_up_master(struct masters *masters, size_t index) {
    struct master *master = &masters->list[index];
    const char *login = wants_minimal_user() ? "locker:secret@" : "";

    if (reserve_port(master) != 0) {
        return -1;
    }
    master->host = masters->options.hosts != NULL ? masters->options.hosts[index] : "127.0.0.1";
    snprintf(master->address, sizeof(master->address), "%s:%d", master->host, master->port);
    snprintf(master->uri, sizeof(master->uri), "%s://%s%s",
             masters->options.tls ? "rediss" : "redis", login, master->address);
    snprintf(master->socket_path, sizeof(master->socket_path), "%s/master-%zu.sock",
             masters->folder, index);
    snprintf(master->log_path, sizeof(master->log_path), "%s/master-%zu.log", masters->folder,
             index);
    snprintf(master->unix_uri, sizeof(master->unix_uri), "unix://%s%s", login, master->socket_path);
    snprintf(master->data_path, sizeof(master->data_path), "%s/master-%zu.data", masters->folder,
             index);
    if (mkdir(master->data_path, 0700) != 0) {
        fprintf(stderr, "masters: cannot make %s: %s\n", master->data_path, strerror(errno));
        return -1;
    }
    masters->uris[index] = master->uri;
    return start_process(masters, master);
}

struct masters *masters_start(size_t count, const char *const *arguments) {
    const struct masters_options options = {.arguments = arguments};

    return masters_start_with(count, &options);
}

struct masters *masters_start_with(size_t count, const struct masters_options *options) {
    struct masters *masters = create_masters(count, options);

    if (folder_make(masters->folder, "masters") != 0) {
        goto fail;
    }
    for (size_t i = 0; i < count; i++) {
        if (set_up_master(masters, i) != 0) {
            goto fail;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (wait_until_up(&masters->list[i]) != 0) {
            goto fail;
        }
    }
    return masters;

fail:
    masters_finish(masters);
    return NULL;
}

/* ------------------------------------------------------------------------------------ what is */

size_t masters_count(const struct masters *masters) {
    return masters->count;
}

int masters_port(const struct masters *masters, size_t index) {
    return at(masters, index)->port;
}

pid_t masters_pid(const struct masters *masters, size_t index) {
    return at(masters, index)->pid;
}

const char *masters_address(const struct masters *masters, size_t index) {
    return masters->list[index].address;
}

const char *masters_uri(const struct masters *masters, size_t index) {
    return at(masters, index)->uri;
}

const char *const *masters_uris(const struct masters *masters) {
    return masters->uris;
}

const char *masters_unix_uri(const struct masters *masters, size_t index) {
    return at(masters, index)->unix_uri;
}

/* -------------------------------------------------------------------------------------- faults */

static void send_signal(const struct master *master, int signal_number) {
    if (master->pid == 0) {
        die("the master at port %d is not running", master->port);
    }
    if (kill(master->pid, signal_number) != 0) {
        die("kill: %s", strerror(errno));
    }
}

void masters_kill(struct masters *masters, size_t index) {
    end_process(at(masters, index));
}

void masters_restart(struct masters *masters, size_t index) {
    struct master *master = at(masters, index);

    end_process(master);
    if (start_process(masters, master) != 0 || wait_until_up(master) != 0) {
        die("cannot restart the master at port %d", master->port);
    }
}

void masters_forget(struct masters *masters, size_t index) {
    struct master *master = at(masters, index);

    if (master->pid != 0) {
        die("the master at port %d is running", master->port);
    }
    if (folder_remove(master->data_path) != 0 || mkdir(master->data_path, 0700) != 0) {
        die("cannot empty %s: %s", master->data_path, strerror(errno));
    }
}

void masters_stop(struct masters *masters, size_t index) {
    struct master *master = at(masters, index);

    send_signal(master, SIGSTOP);
    if (!WIFSTOPPED(wait_for_change(master->pid, WUNTRACED))) {
        master->pid = 0;
        die("the master at port %d ended instead of stopping", master->port);
    }
}

void masters_continue(struct masters *masters, size_t index) {
    send_signal(at(masters, index), SIGCONT);
}

void masters_stop_range(struct masters *masters, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        masters_stop(masters, i);
    }
}

void masters_continue_range(struct masters *masters, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        masters_continue(masters, i);
    }
}

/* ------------------------------------------------------------------------------------- queries */

static const char *password_of(const struct masters *masters) {
    for (size_t i = 0; i + 1 < masters->argument_count; i++) {
        if (strcmp(masters->arguments[i], "--requirepass") == 0) {
            return masters->arguments[i + 1];
        }
    }
    return NULL;
}

static char *reply_to_string(const redisReply *reply);

static char *join_elements(const redisReply *array) {
    char *joined = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&joined, &size);

    if (stream == NULL) {
        die("out of memory");
    }
    for (size_t i = 0; i < array->elements; i++) {
        char *element = reply_to_string(array->element[i]);

        fprintf(stream, "%s%s", i == 0 ? "" : "\n", element == NULL ? "" : element);
        free(element);
    }
    if (fclose(stream) != 0) {
        die("out of memory");
    }
    return joined;
}

static char *reply_to_string(const redisReply *reply) {
    char number[32];
    char *error;

    switch (reply->type) {
    case REDIS_REPLY_NIL:
        return NULL;
    case REDIS_REPLY_INTEGER:
        snprintf(number, sizeof(number), "%lld", reply->integer);
        return copy_string(number, strlen(number));
    case REDIS_REPLY_ARRAY:
        return join_elements(reply);
    case REDIS_REPLY_ERROR:
        error = allocate(reply->len + 2, 1);
        error[0] = '-';
        memcpy(error + 1, reply->str, reply->len);
        return error;
    default:
        return copy_string(reply->str, reply->len);
    }
}

/* Sends AUTH if there is a password. A refusal shows in the answer to the query itself. */
static void authenticate(const struct masters *masters, redisContext *context) {
    const char *password = password_of(masters);

    if (password != NULL) {
        redisReply *reply = redisCommand(context, "AUTH %s", password);

        if (reply != NULL) {
            freeReplyObject(reply);
        }
    }
}

static char *query(const struct masters *masters, size_t index, const char *format,
                   va_list values) {
    const struct master *master = at(masters, index);
    redisContext *context = connect_to(master);
    redisReply *reply = NULL;
    char *answer;

    if (context->err == 0) {
        authenticate(masters, context);
    }
    if (context->err == 0) {
        reply = redisvCommand(context, format, values);
    }
    if (reply == NULL) {
        die("the master at port %d did not answer \"%s\": %s", master->port, format,
            context->errstr);
    }
    answer = reply_to_string(reply);
    freeReplyObject(reply);
    redisFree(context);
    return answer;
}

char *masters_query(struct masters *masters, size_t index, const char *format, ...) {
    va_list values;
    char *answer;

    va_start(values, format);
    answer = query(masters, index, format, values);
    va_end(values);
    return answer;
}

long long masters_query_integer(struct masters *masters, size_t index, const char *format, ...) {
    va_list values;
    char *answer;
    char *end;
    long long number;

    va_start(values, format);
    answer = query(masters, index, format, values);
    va_end(values);

    if (answer == NULL) {
        die("\"%s\" was answered by nil, not by an integer", format);
    }
    errno = 0;
    number = strtoll(answer, &end, 10);
    if (errno != 0 || end == answer || *end != '\0') {
        die("\"%s\" was answered by \"%s\", not by an integer", format, answer);
    }
    free(answer);
    return number;
}
