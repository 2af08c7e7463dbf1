/*
 * A peer listens on a Unix socket whose name is gone: it is reached by /proc/self/fd, so nothing
 * is left in the file system however a run ends. Where that descriptor leads decides whether a
 * connection is taken or refused.
 */
#include "peers.h"

#include "check.h"
#include "door.h"
#include "io/clock.h"
#include "wire/command.h"
#include "wire/script.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptor that leads to peer 0's socket; the others follow. Far above what is in use. */
#define DOOR 200

#define INBOX_SIZE (256 * 1024)
#define OUTBOX_SIZE (192 * 1024)

struct peer {
    int listener;
    int open_door, closed_door; /* lead to a socket that is listened on, and to one that is not */
    int socket;                 /* -1: nobody is connected */
    bool listens;
    size_t received, answered; /* bytes in the inbox, and how many of them are dealt with */
    size_t to_say, said;       /* the same of the outbox */
    char inbox[INBOX_SIZE], outbox[OUTBOX_SIZE];
};

static struct peer peers[PEERS_MAX];
static size_t chunk_size;
static bool told_password;

const char *peers_uri(unsigned peer, bool with_login) {
    static char uris[2][PEERS_MAX][80];
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        snprintf(uris[0][i], sizeof(uris[0][i]), "unix:///proc/self/fd/%u", DOOR + i);
        snprintf(uris[1][i], sizeof(uris[1][i]), "unix://ali:%s@/proc/self/fd/%u?db=1",
                 PEERS_PASSWORD, DOOR + i);
    }
    return uris[with_login][peer];
}

/* ---- once ---- */

/* A socket that no name leads to any more, but *door. */
static int make_socket(int *door) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    *door = door_make(fd);
    CHECK(*door >= 0);
    return fd;
}

static void make_peers(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        peers[i].listener = make_socket(&peers[i].open_door);
        CHECK(listen(peers[i].listener, 8) == 0);
        close(make_socket(&peers[i].closed_door));
        peers[i].socket = -1;
    }
}

/* ---- connections ---- */

static void hang_up(struct peer *peer) {
    if (peer->socket >= 0) {
        close(peer->socket);
        peer->socket = -1;
    }
    peer->received = peer->answered = peer->to_say = peer->said = 0;
}

/* The newest counts: the client has one at a time. */
static void take_connections(struct peer *peer) {
    int fd;
    while ((fd = accept4(peer->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        hang_up(peer);
        peer->socket = fd;
    }
}

void peers_listen(unsigned index, bool listens) {
    struct peer *peer = &peers[index];
    if (peer->listens != listens) {
        peer->listens = listens;
        CHECK(dup3(listens ? peer->open_door : peer->closed_door, DOOR + (int)index, O_CLOEXEC) >=
              0);
    }
}

void peers_begin(void) {
    static bool made;
    if (!made) {
        made = true;
        make_peers();
    }
    chunk_size = 0;
    told_password = false;
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        peers_listen(i, true);
    }
}

void peers_end(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        take_connections(&peers[i]);
        hang_up(&peers[i]);
    }
}

void peers_cut(unsigned index) {
    take_connections(&peers[index]);
    hang_up(&peers[index]);
}

/* ---- what the client says ---- */

static void receive(struct peer *peer) {
    if (peer->answered > 0) {
        peer->received -= peer->answered;
        memmove(peer->inbox, peer->inbox + peer->answered, peer->received);
        peer->answered = 0;
    }
    if (peer->socket < 0) {
        return;
    }
    ssize_t got =
        recv(peer->socket, peer->inbox + peer->received, INBOX_SIZE - peer->received, MSG_DONTWAIT);
    if (got > 0) {
        peer->received += (size_t)got;
    }
}

/* A command, read as a server would. */
struct command {
    const char *next, *end;
    unsigned words;
    char verb[16];
    unsigned keys; /* of a script */
};

/* "*5\r\n" or "$5\r\n"; false when it is not complete. */
static bool read_header(struct command *command, char kind, size_t *value) {
    const char *line_end = memchr(command->next, '\n', (size_t)(command->end - command->next));
    if (line_end == NULL) {
        return false;
    }
    CHECK(command->next[0] == kind && line_end - command->next >= 3 && line_end[-1] == '\r');
    *value = 0;
    for (const char *p = command->next + 1; p < line_end - 1; p++) {
        CHECK(*p >= '0' && *p <= '9' && *value < 1000000);
        *value = *value * 10 + (size_t)(*p - '0');
    }
    command->next = line_end + 1;
    return true;
}

static void note_word(struct command *command, unsigned index, const char *word, size_t length) {
    if (index == 0) {
        snprintf(command->verb, sizeof(command->verb), "%.*s", (int)length, word);
    } else if (index == 2) {
        command->keys = length == 1 ? (unsigned)(word[0] - '0')
                                    : (unsigned)(word[0] - '0') * 10 + (unsigned)(word[1] - '0');
    }
}

static bool read_command(struct command *command) {
    size_t words, length;
    if (!read_header(command, '*', &words)) {
        return false;
    }
    for (unsigned i = 0; i < words; i++) {
        if (!read_header(command, '$', &length) ||
            (size_t)(command->end - command->next) < length + 2) {
            return false;
        }
        CHECK(memcmp(command->next + length, "\r\n", 2) == 0);
        note_word(command, i, command->next, length);
        command->next += length + 2;
    }
    return true;
}

/* ---- what it is answered ---- */

static void say(struct peer *peer, const char *bytes, size_t length) {
    if (length <= OUTBOX_SIZE - peer->to_say) {
        memcpy(peer->outbox + peer->to_say, bytes, length);
        peer->to_say += length;
    }
}

/* Looks at the newest bytes; the password may have been told in pieces. */
static bool holds_password(const struct peer *peer, size_t newest) {
    size_t size = newest + sizeof(PEERS_PASSWORD);
    size = size < peer->to_say ? size : peer->to_say;
    return memmem(peer->outbox + peer->to_say - size, size, PEERS_PASSWORD,
                  sizeof(PEERS_PASSWORD) - 1) != NULL;
}

void peers_say(unsigned index, const char *bytes, size_t length) {
    struct peer *peer = &peers[index];
    take_connections(peer);
    say(peer, bytes, length);
    told_password = told_password || holds_password(peer, length);
}

bool peers_told_password(void) {
    return told_password;
}

static void say_text(struct peer *peer, const char *text) {
    say(peer, text, strlen(text));
}

/* As Redis does, with the words as it was told them. */
static void say_unknown(struct peer *peer, const struct command *command, const char *words) {
    char text[600];
    snprintf(text, sizeof(text),
             "-ERR unknown command '%s', with args beginning with: ", command->verb);
    say_text(peer, text);
    for (const char *p = words; p < command->next && p - words < 500; p++) {
        say(peer, *p == '\r' || *p == '\n' ? "'" : p, 1);
    }
    say_text(peer, "\r\n");
}

static void say_items(struct peer *peer, const char *item, unsigned count) {
    char text[2048] = "";
    char header[16];
    for (unsigned i = 0; i < count && i < 64; i++) {
        strcat(text, item);
    }
    snprintf(header, sizeof(header), "$%zu\r\n", strlen(text));
    say_text(peer, header);
    say_text(peer, text);
    say_text(peer, "\r\n");
}

/* INFO, and what a script says of the clock and the marker: nothing is wrong with it. */
static bool answer_about_itself(struct peer *peer, const struct command *command,
                                const char *words) {
    char info[160];
    size_t size = (size_t)(command->next - words);
    if (strcmp(command->verb, "INFO") == 0) {
        snprintf(info, sizeof(info), "run_id:run-of-%u\r\nuptime_in_seconds:4000000\r\nrole:master",
                 (unsigned)(peer - peers));
    } else if (memmem(words, size, REDLOCK_MARKER_KEY, strlen(REDLOCK_MARKER_KEY)) != NULL) {
        snprintf(info, sizeof(info), "%" PRIu64 " 4000000000000 1", clock_now() / 1000);
    } else {
        return false;
    }
    say_items(peer, info, 1);
    return true;
}

/* The counters of fenced locks agree, or do not, as the peers' numbers have it. */
static void say_fenced_items(struct peer *peer, const char *item, unsigned locks) {
    char granted[24];
    snprintf(granted, sizeof(granted), "y%u", 7 + (unsigned)(peer - peers) % 3);
    say_items(peer, strcmp(item, "y") == 0 ? granted : item, locks);
}

/* Whether this stands in it: such as a key with a suffix, and its end. */
static bool has_words(const struct command *command, const char *words, const char *suffix) {
    return memmem(words, (size_t)(command->next - words), suffix, strlen(suffix)) != NULL;
}

/* Each lock's key, and what stands beside it. */
static void say_of_locks(struct peer *peer, const struct command *command, const char *words,
                         const char *item) {
    bool is_fenced = has_words(command, words, COUNTER_SUFFIX "\r\n");
    unsigned keys = 1u + is_fenced + has_words(command, words, READERS_SUFFIX "\r\n") +
                    has_words(command, words, WRITER_SUFFIX "\r\n");
    if (is_fenced) {
        say_fenced_items(peer, item, command->keys / keys);
    } else {
        say_items(peer, item, command->keys / keys);
    }
}

/* Those who cannot have a permit are told of others; who can, of a counter, if there is to be one.
 */
static bool answer_about_permits(struct peer *peer, const struct command *command,
                                 const char *words, const char *item) {
    char text[24];
    bool is_granted = strcmp(item, "y") == 0;
    if (!has_words(command, words, script_sha(SCRIPT_PERMIT)) &&
        !has_words(command, words, script_text(SCRIPT_PERMIT))) {
        return false;
    }
    if (is_granted && !has_words(command, words, "\r\n$1\r\n0\r\n")) {
        say_fenced_items(peer, item, command->keys);
        return true;
    }
    snprintf(text, sizeof(text), "%sf%x", item, 7 + (unsigned)(peer - peers));
    say_items(peer, is_granted ? item : text, command->keys);
    return true;
}

static void answer(struct peer *peer, const struct command *command, const char *words,
                   enum manner manner) {
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
    bool is_set = strcmp(command->verb, "SET") == 0;
    bool is_script = strncmp(command->verb, "EVAL", 4) == 0;
    if (is_set && manners[manner].to_set != NULL) {
        text = manners[manner].to_set;
    } else if (is_script && manners[manner].item != NULL &&
               answer_about_permits(peer, command, words, manners[manner].item)) {
        return;
    } else if (is_script && manners[manner].item != NULL) {
        say_of_locks(peer, command, words, manners[manner].item);
        return;
    } else if (text == NULL || (manner == MANNER_NO_SCRIPT && !is_script)) {
        text = "+OK\r\n";
    }
    say_text(peer, text);
}

unsigned peers_answer(unsigned index, enum manner manner, unsigned count) {
    struct peer *peer = &peers[index];
    unsigned answered = 0;
    take_connections(peer);
    receive(peer);
    for (; answered < count; answered++) {
        const char *words = peer->inbox + peer->answered;
        struct command command = {.next = words, .end = peer->inbox + peer->received};
        if (!read_command(&command)) {
            break;
        }
        peer->answered = (size_t)(command.next - peer->inbox);
        if (manner == MANNER_UNKNOWN) {
            say_unknown(peer, &command, words);
        } else if (manner != MANNER_YES || !answer_about_itself(peer, &command, words)) {
            answer(peer, &command, words, manner);
        }
    }
    return answered;
}

void peers_set_chunk(size_t chunk) {
    chunk_size = chunk;
}

static void send_chunk(struct peer *peer) {
    size_t length = peer->to_say - peer->said;
    if (peer->socket < 0 || length == 0) {
        return;
    }
    if (chunk_size > 0 && length > chunk_size) {
        length = chunk_size;
    }
    ssize_t sent =
        send(peer->socket, peer->outbox + peer->said, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        peer->said += (size_t)sent;
    }
    if (peer->said == peer->to_say) {
        peer->said = peer->to_say = 0;
    }
}

void peers_turn(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        if (peers[i].to_say > 0) {
            send_chunk(&peers[i]);
        }
    }
}
