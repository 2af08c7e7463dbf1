/*
 * A client has a connection to each peer for commands, and one for messages while requests wait in
 * the queue. The connection for messages is the one that comes while the other one is open.
 *
 * A peer listens on a Unix socket whose name is gone and that is reached by /proc/self/fd, so that
 * nothing stays in the file system however a run ends. The descriptor leads to one of two sockets,
 * one of which accepts connections while the other refuses them.
 */
#include "peers.h"

#include "check.h"
#include "command.h"
#include "fake_connection.h"
#include "io/clock.h"
#include "unix_listener.h"
#include "wire/command.h"
#include "wire/script.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptor that leads to peer 0's socket; the others follow. Far above those in use. */
#define LISTENER_FD 200

#define PASSWORD_SIZE (sizeof(PEERS_PASSWORD) - 1)

#define INBOX_SIZE (256 * 1024)
#define OUTBOX_SIZE (192 * 1024)

struct link {
    struct peer *peer;
    int socket; /* -1: no client is connected */
    struct fake_connection connection;
};

struct peer {
    struct unix_listener unix_listener;
    bool listens;
    struct link commands, messages;
    enum manner manner;             /* the current manner of the answers */
    char newest[2 * PASSWORD_SIZE]; /* the last bytes that the input made the peer send */
    char channel[64];               /* the channel to which the client has subscribed, or "" */
    struct peers_waiter waiter;
};

static struct peer peers[PEERS_MAX];
static size_t chunk_size;
static bool got_password;

const char *peers_uri(unsigned peer, bool with_login) {
    static char uris[2][PEERS_MAX][80];
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        snprintf(uris[0][i], sizeof(uris[0][i]), "unix:///proc/self/fd/%u", LISTENER_FD + i);
        snprintf(uris[1][i], sizeof(uris[1][i]), "unix://ali:%s@/proc/self/fd/%u?db=1",
                 PEERS_PASSWORD, LISTENER_FD + i);
    }
    return uris[with_login][peer];
}

/* ---- once ---- */

static int new_socket(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    return fd;
}

static void make_link(struct link *link, struct peer *peer) {
    link->peer = peer;
    link->socket = -1;
    CHECK(fake_connection_init(&link->connection));
}

static void make_peers(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        CHECK(unix_listener_make(&peers[i].unix_listener, new_socket(), new_socket(),
                                 LISTENER_FD + (int)i));
        peers[i].listens = true;
        make_link(&peers[i].commands, &peers[i]);
        make_link(&peers[i].messages, &peers[i]);
    }
}

/* ---- connections ---- */

static void hang_up(struct link *link) {
    struct peer *peer = link->peer;
    if (link->socket >= 0) {
        close(link->socket);
        link->socket = -1;
    }
    fake_connection_clear(&link->connection);
    if (link == &peer->messages) {
        peer->channel[0] = '\0';
    } else {
        memset(peer->newest, 0, sizeof(peer->newest));
    }
}

static void hang_up_if_ended(struct link *link) {
    struct pollfd end = {.fd = link->socket};
    if (link->socket >= 0 && world_poll(&end, 1) > 0 && (end.revents & POLLHUP) != 0) {
        hang_up(link);
    }
}

static void take_connections(struct peer *peer) {
    int fd;
    while ((fd = unix_listener_accept(peer->unix_listener.socket)) >= 0) {
        hang_up_if_ended(&peer->commands);
        hang_up_if_ended(&peer->messages);
        struct link *link = peer->commands.socket < 0 ? &peer->commands : &peer->messages;
        hang_up(link);
        link->socket = fd;
    }
}

void peers_listen(unsigned index, bool listens) {
    struct peer *peer = &peers[index];
    if (peer->listens != listens) {
        peer->listens = listens;
        CHECK(unix_listener_set(&peer->unix_listener, listens));
    }
}

void peers_begin(void) {
    static bool made;
    if (!made) {
        made = true;
        make_peers();
    }
    chunk_size = 0;
    got_password = false;
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        peers_listen(i, true);
    }
}

void peers_end(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        peers_cut(i);
        memset(&peers[i].waiter, 0, sizeof(peers[i].waiter));
    }
}

void peers_cut(unsigned index) {
    take_connections(&peers[index]);
    hang_up(&peers[index].commands);
    hang_up(&peers[index].messages);
}

void peers_cut_messages(unsigned index) {
    take_connections(&peers[index]);
    hang_up(&peers[index].messages);
}

/* ---- answers ---- */

static void say(struct link *link, const char *bytes, size_t length) {
    if (length <= OUTBOX_SIZE - fake_connection_unsent(&link->connection)) {
        fake_connection_say(&link->connection, bytes, length);
    }
}

static unsigned number_of(const struct link *link) {
    return (unsigned)(link->peer - peers);
}

/* Returns whether the newest bytes contain the password, which may have come in pieces. */
static bool holds_password(struct peer *peer, const char *bytes, size_t length) {
    bool is_sent = memmem(bytes, length, PEERS_PASSWORD, PASSWORD_SIZE) != NULL;
    size_t kept = length < PASSWORD_SIZE ? length : PASSWORD_SIZE;
    memmove(peer->newest, peer->newest + kept, sizeof(peer->newest) - kept);
    memcpy(peer->newest + sizeof(peer->newest) - kept, bytes + length - kept, kept);
    return is_sent ||
           memmem(peer->newest, sizeof(peer->newest), PEERS_PASSWORD, PASSWORD_SIZE) != NULL;
}

void peers_say(unsigned index, const char *bytes, size_t length) {
    struct peer *peer = &peers[index];
    take_connections(peer);
    say(&peer->commands, bytes, length);
    got_password = holds_password(peer, bytes, length) || got_password;
}

void peers_say_to_channel(unsigned index, const char *bytes, size_t length) {
    struct peer *peer = &peers[index];
    take_connections(peer);
    say(&peer->messages, bytes, length);
    got_password = got_password || memmem(bytes, length, PEERS_PASSWORD, PASSWORD_SIZE) != NULL;
}

void peers_publish(unsigned index, const char *text, size_t length) {
    struct peer *peer = &peers[index];
    struct fake_connection *connection = &peer->messages.connection;
    if (peer->channel[0] != '\0' &&
        length + 128 <= OUTBOX_SIZE - fake_connection_unsent(connection)) {
        fake_connection_say_text(connection, "*3\r\n$7\r\nmessage\r\n");
        fake_connection_say_bulk(connection, peer->channel, strlen(peer->channel));
        fake_connection_say_bulk(connection, text, length);
    }
}

const struct peers_waiter *peers_waiter(unsigned index) {
    return &peers[index].waiter;
}

bool peers_got_password(void) {
    return got_password;
}

static void say_text(struct link *link, const char *text) {
    say(link, text, strlen(text));
}

/* Refuses an unknown command as Redis does, with the command's own words. */
static void say_unknown(struct link *link, const struct command *command) {
    const char *end = command->bytes + (command->size < 500 ? command->size : 500);
    char verb[16];
    char text[600];
    command_text(command, 0, verb, sizeof(verb));
    snprintf(text, sizeof(text), "-ERR unknown command '%s', with args beginning with: ", verb);
    say_text(link, text);
    for (const char *p = command->bytes; p < end; p++) {
        say(link, *p == '\r' || *p == '\n' ? "'" : p, 1);
    }
    say_text(link, "\r\n");
}

static void say_items(struct link *link, const char *item, size_t count) {
    char text[2048] = "";
    for (unsigned i = 0; i < count && i < 64; i++) {
        strcat(text, item);
    }
    if (strlen(text) + 32 <= OUTBOX_SIZE - fake_connection_unsent(&link->connection)) {
        fake_connection_say_bulk(&link->connection, text, strlen(text));
    }
}

/* Returns whether the command contains the text, such as the suffix of a key. */
static bool has_words(const struct command *command, const char *words) {
    return memmem(command->bytes, command->size, words, strlen(words)) != NULL;
}

/* Answers INFO and the heartbeat in a way that makes the peer trusted. */
static bool answer_about_itself(struct link *link, const struct command *command) {
    char info[160];
    if (command_is(command, "INFO", NULL)) {
        snprintf(info, sizeof(info), "run_id:run-of-%u\r\nuptime_in_seconds:4000000\r\nrole:master",
                 number_of(link));
    } else if (has_words(command, REDLOCK_MARKER_KEY)) {
        snprintf(info, sizeof(info), "%" PRIu64 " 4000000000000 1 master -", clock_now() / 1000);
    } else {
        return false;
    }
    say_items(link, info, 1);
    return true;
}

/* Returns whether the command calls the script. */
static bool calls(const struct command *command, enum script script) {
    char text[8];
    command_text(command, 0, text, sizeof(text));
    return command_is(command, "EVALSHA", script_sha(script)) ||
           (strcmp(text, "EVAL") == 0 && has_words(command, script_text(script)));
}

/* Answers the commands that have a key watched: the key does not exist. */
static bool answer_about_keys(struct link *link, const struct command *command) {
    bool is_id = command_is(command, "CLIENT", "ID");
    bool is_order =
        command_is(command, "CLIENT", "TRACKING") || command_is(command, "CLIENT", "CACHING");
    bool is_look = command_is(command, "GETRANGE", NULL);
    if (is_id || is_order || is_look) {
        say_text(link, is_id ? ":7\r\n" : is_order ? "+OK\r\n" : "$0\r\n\r\n");
    }
    return is_id || is_order || is_look;
}

/* Answers SUBSCRIBE, and probes, whose text it publishes, so that the channel becomes ready. */
static bool answer_about_channel(struct link *link, const struct command *command) {
    struct peer *peer = link->peer;
    char text[160];
    if (command_is(command, "SUBSCRIBE", NULL)) {
        command_text(command, 1, peer->channel, sizeof(peer->channel));
        snprintf(text, sizeof(text), "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n",
                 strlen(peer->channel), peer->channel);
        say_text(link, text);
        return true;
    }
    if (!calls(command, SCRIPT_PROBE)) {
        return false;
    }
    command_text(command, 4, text, sizeof(text));
    peers_publish(number_of(link), text, strlen(text));
    say_text(link, ":1\r\n");
    return true;
}

/* The form of a call of a script that gives entries, whose arguments begin with the channel. */
struct queueing {
    size_t arguments; /* arguments of each lock, the first of which is the value */
    size_t form;      /* index of the entry's form among them */
    size_t names;     /* names of each key: the key, and those beside it */
    size_t locks;
    bool is_set;
};

static struct queueing queueing_of(const struct command *command) {
    bool is_set = calls(command, SCRIPT_QUEUE_SET);
    bool is_share = calls(command, SCRIPT_SHARE_QUEUE);
    struct queueing queueing = {.arguments = is_set ? 7 : 6,
                                .form = is_set ? 4 : 3,
                                .names = is_share ? 3 : 1,
                                .is_set = is_set};
    size_t others = 4 + command_keys(command);
    if ((is_set || is_share || calls(command, SCRIPT_QUEUE)) && command->count > others) {
        queueing.locks = (command->count - others) / queueing.arguments;
    }
    return queueing;
}

/* Returns the index of the first argument of a lock. */
static size_t queue_argument(const struct command *command, const struct queueing *queueing,
                             size_t lock) {
    return 3 + command_keys(command) + 1 + queueing->arguments * lock;
}

/*
 * Records the last waiter of a call, to which the input may push a key; the last two if there are
 * several.
 */
static void record_waiter(struct peer *peer, const struct command *command) {
    size_t keys = command_keys(command);
    struct queueing queueing = queueing_of(command);
    struct peers_waiter *waiter = &peer->waiter;
    if (queueing.locks > 0 && keys > 0) {
        size_t first = queue_argument(command, &queueing, queueing.locks - 1);
        char key[16], other[16];
        command_text(command, first, waiter->token, PEERS_TOKEN_SIZE);
        command_text(command, 3 + keys - queueing.names, key, sizeof(key));
        command_text(command, 1 + keys, other, sizeof(other));
        if (!queueing.is_set || keys == 1) {
            snprintf(waiter->names, sizeof(waiter->names), " %s", key);
        } else {
            snprintf(waiter->names, sizeof(waiter->names), "+%zu:%s%zu:%s", strlen(other), other,
                     strlen(key), key);
        }
    }
}

/*
 * Answers QUEUE: a grant, with a counter if fenced, or an entry after as many as there are peers.
 */
static bool answer_about_queues(struct link *link, const struct command *command,
                                const char *item) {
    char text[2048] = "";
    struct queueing queueing = queueing_of(command);
    for (size_t i = 0; i < queueing.locks && i < 64; i++) {
        char form[4];
        size_t end = strlen(text);
        command_text(command, queue_argument(command, &queueing, i) + queueing.form, form,
                     sizeof(form));
        if (strcmp(item, "y") == 0 && (form[0] == '1' || form[0] == 'x' || form[0] == 'f')) {
            snprintf(text + end, sizeof(text) - end, "y%u", 7 + number_of(link) % 3);
        } else if (item[0] == 'h') {
            snprintf(text + end, sizeof(text) - end, "%sq%u", item, number_of(link));
        } else {
            snprintf(text + end, sizeof(text) - end, "%s", item);
        }
    }
    if (queueing.locks > 0) {
        say_items(link, text, 1);
    }
    return queueing.locks > 0;
}

/* Answers INSPECT: a key that is held or free, and its waiters, some of them at all peers. */
static bool answer_about_holder(struct link *link, const struct command *command,
                                const char *item) {
    char text[400];
    if (!calls(command, SCRIPT_INSPECT)) {
        return false;
    }
    snprintf(text, sizeof(text), "%s 2 2 7 %040u/first 8 %040u %s",
             item[0] == 'h' ? "h 700 7 0" : "f 0 7 0", 1, 2 + number_of(link) / 2,
             item[0] == 'h' ? "somebody" : "");
    say_items(link, text, 1);
    return true;
}

/* Sends items with counters, which agree or not depending on the numbers of the peers. */
static void say_fenced_items(struct link *link, const char *item, size_t locks) {
    char granted[24];
    snprintf(granted, sizeof(granted), "y%u", 7 + number_of(link) % 3);
    say_items(link, strcmp(item, "y") == 0 ? granted : item, locks);
}

/* Sends an item for each lock of the call. */
static void say_of_locks(struct link *link, const struct command *command, const char *item) {
    bool is_fenced = has_words(command, COUNTER_SUFFIX "\r\n");
    unsigned keys = 1u + is_fenced + has_words(command, READERS_SUFFIX "\r\n") +
                    has_words(command, WRITER_SUFFIX "\r\n");
    if (is_fenced) {
        say_fenced_items(link, item, command_keys(command) / keys);
    } else {
        say_items(link, item, command_keys(command) / keys);
    }
}

/*
 * Answers a call for permits: a denial with the free permits, or a grant, with a counter if fenced.
 */
static bool answer_about_permits(struct link *link, const struct command *command,
                                 const char *item) {
    char text[24];
    bool is_granted = strcmp(item, "y") == 0;
    if (!calls(command, SCRIPT_PERMIT)) {
        return false;
    }
    if (is_granted && !has_words(command, "\r\n$1\r\n0\r\n")) {
        say_fenced_items(link, item, command_keys(command));
        return true;
    }
    snprintf(text, sizeof(text), "%sf%x", item, 7 + number_of(link));
    say_items(link, is_granted ? item : text, command_keys(command));
    return true;
}

static void answer_in_manner(struct link *link, const struct command *command, enum manner manner) {
    static const struct {
        const char *to_set, *item, *to_all;
    } manners[MANNER_COUNT] = {
        [MANNER_YES] = {"+OK\r\n", "y", NULL},
        [MANNER_HELD] = {"$-1\r\n", "h700", NULL},
        [MANNER_MISSING] = {"$-1\r\n", "m", NULL},
        [MANNER_TYPE] = {"$-1\r\n", "t", NULL},
        [MANNER_ERROR] = {NULL, NULL, "-LOADING the dataset\r\n"},
        [MANNER_NO_SCRIPT] = {"+OK\r\n", NULL, "-NOSCRIPT No matching script.\r\n"},
        [MANNER_FORBIDDEN] = {NULL, NULL, "-NOAUTH Authentication required.\r\n"},
        [MANNER_ODD] = {NULL, NULL, ":7\r\n"},
    };
    const char *text = manners[manner].to_all;
    bool is_set = command_is(command, "SET", NULL);
    bool is_script = command_is_script(command);
    if (is_set && manners[manner].to_set != NULL) {
        text = manners[manner].to_set;
    } else if (is_script && manners[manner].item != NULL &&
               (answer_about_permits(link, command, manners[manner].item) ||
                answer_about_queues(link, command, manners[manner].item) ||
                answer_about_holder(link, command, manners[manner].item))) {
        return;
    } else if (is_script && manners[manner].item != NULL) {
        say_of_locks(link, command, manners[manner].item);
        return;
    } else if (text == NULL || (manner == MANNER_NO_SCRIPT && !is_script)) {
        text = "+OK\r\n";
    }
    say_text(link, text);
}

static bool answer(const struct command *command, void *arg) {
    struct link *link = arg;
    enum manner manner = link->peer->manner;
    bool is_sound = manner == MANNER_YES || manner == MANNER_HELD;
    record_waiter(link->peer, command);
    if (manner == MANNER_UNKNOWN) {
        say_unknown(link, command);
    } else if (!is_sound ||
               !(answer_about_itself(link, command) || answer_about_channel(link, command) ||
                 answer_about_keys(link, command))) {
        answer_in_manner(link, command, manner);
    }
    return true;
}

static unsigned serve(struct link *link, unsigned count) {
    if (link->socket >= 0) {
        fake_connection_receive(&link->connection, link->socket, INBOX_SIZE);
    }
    ssize_t answered = fake_connection_serve(&link->connection, count, answer, link);
    CHECK(answered >= 0);
    return (unsigned)answered;
}

unsigned peers_answer(unsigned index, enum manner manner, unsigned count) {
    struct peer *peer = &peers[index];
    take_connections(peer);
    peer->manner = manner;
    unsigned answered = serve(&peer->commands, count);
    return answered + serve(&peer->messages, count - answered);
}

void peers_set_chunk(size_t chunk) {
    chunk_size = chunk;
}

static void send_due(struct link *link) {
    if (link->socket >= 0) {
        fake_connection_send(&link->connection, link->socket,
                             chunk_size > 0 ? chunk_size : SIZE_MAX);
    }
}

void peers_turn(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        send_due(&peers[i].commands);
        send_due(&peers[i].messages);
    }
}
