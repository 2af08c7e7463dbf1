/*
 * A peer listens on a Unix socket whose name is gone and that is reached by /proc/self/fd, so that
 * nothing is left in the file system however a run ends. The descriptor leads to one of two
 * sockets, of which one takes connections and the other refuses them.
 */
#include "peers.h"

#include "check.h"
#include "command.h"
#include "door.h"
#include "io/clock.h"
#include "seat.h"
#include "wire/command.h"
#include "wire/script.h"

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
#define DOOR 200

#define PASSWORD_SIZE (sizeof(PEERS_PASSWORD) - 1)

#define INBOX_SIZE (256 * 1024)
#define OUTBOX_SIZE (192 * 1024)

struct peer {
    struct door door;
    int socket; /* -1: no client is connected */
    bool listens;
    struct seat seat;
    enum manner manner;             /* the manner of the answers now */
    char newest[2 * PASSWORD_SIZE]; /* the last bytes that the input had the peer say */
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

static int new_socket(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    return fd;
}

static void make_peers(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        CHECK(door_make(&peers[i].door, new_socket(), new_socket(), DOOR + (int)i));
        CHECK(seat_init(&peers[i].seat));
        peers[i].listens = true;
        peers[i].socket = -1;
    }
}

/* ---- connections ---- */

static void hang_up(struct peer *peer) {
    if (peer->socket >= 0) {
        close(peer->socket);
        peer->socket = -1;
    }
    seat_clear(&peer->seat);
    memset(peer->newest, 0, sizeof(peer->newest));
}

/* Takes connections, of which the newest counts: the client has one at a time. */
static void take_connections(struct peer *peer) {
    int fd;
    while ((fd = door_accept(peer->door.listener)) >= 0) {
        hang_up(peer);
        peer->socket = fd;
    }
}

void peers_listen(unsigned index, bool listens) {
    struct peer *peer = &peers[index];
    if (peer->listens != listens) {
        peer->listens = listens;
        CHECK(door_set(&peer->door, listens));
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

/* ---- answers ---- */

static void say(struct peer *peer, const char *bytes, size_t length) {
    if (length <= OUTBOX_SIZE - seat_unsent(&peer->seat)) {
        seat_say(&peer->seat, bytes, length);
    }
}

/* Returns whether the newest bytes contain the password, which may have come in pieces. */
static bool holds_password(struct peer *peer, const char *bytes, size_t length) {
    bool is_told = memmem(bytes, length, PEERS_PASSWORD, PASSWORD_SIZE) != NULL;
    size_t kept = length < PASSWORD_SIZE ? length : PASSWORD_SIZE;
    memmove(peer->newest, peer->newest + kept, sizeof(peer->newest) - kept);
    memcpy(peer->newest + sizeof(peer->newest) - kept, bytes + length - kept, kept);
    return is_told ||
           memmem(peer->newest, sizeof(peer->newest), PEERS_PASSWORD, PASSWORD_SIZE) != NULL;
}

void peers_say(unsigned index, const char *bytes, size_t length) {
    struct peer *peer = &peers[index];
    take_connections(peer);
    say(peer, bytes, length);
    told_password = holds_password(peer, bytes, length) || told_password;
}

bool peers_told_password(void) {
    return told_password;
}

static void say_text(struct peer *peer, const char *text) {
    say(peer, text, strlen(text));
}

/* Refuses an unknown command as Redis does, with the command's own words. */
static void say_unknown(struct peer *peer, const struct command *command) {
    const char *end = command->bytes + (command->size < 500 ? command->size : 500);
    char verb[16];
    char text[600];
    command_text(command, 0, verb, sizeof(verb));
    snprintf(text, sizeof(text), "-ERR unknown command '%s', with args beginning with: ", verb);
    say_text(peer, text);
    for (const char *p = command->bytes; p < end; p++) {
        say(peer, *p == '\r' || *p == '\n' ? "'" : p, 1);
    }
    say_text(peer, "\r\n");
}

static void say_items(struct peer *peer, const char *item, size_t count) {
    char text[2048] = "";
    for (unsigned i = 0; i < count && i < 64; i++) {
        strcat(text, item);
    }
    if (strlen(text) + 32 <= OUTBOX_SIZE - seat_unsent(&peer->seat)) {
        seat_say_bulk(&peer->seat, text, strlen(text));
    }
}

/* Returns whether the command contains the text, such as the suffix of a key. */
static bool has_words(const struct command *command, const char *words) {
    return memmem(command->bytes, command->size, words, strlen(words)) != NULL;
}

/* Answers INFO, and the beat: the peer is to be trusted. */
static bool answer_about_itself(struct peer *peer, const struct command *command) {
    char info[160];
    if (command_is(command, "INFO", NULL)) {
        snprintf(info, sizeof(info), "run_id:run-of-%u\r\nuptime_in_seconds:4000000\r\nrole:master",
                 (unsigned)(peer - peers));
    } else if (has_words(command, REDLOCK_MARKER_KEY)) {
        snprintf(info, sizeof(info), "%" PRIu64 " 4000000000000 1", clock_now() / 1000);
    } else {
        return false;
    }
    say_items(peer, info, 1);
    return true;
}

/* Sends items with counters, which agree or not by the numbers of the peers. */
static void say_fenced_items(struct peer *peer, const char *item, size_t locks) {
    char granted[24];
    snprintf(granted, sizeof(granted), "y%u", 7 + (unsigned)(peer - peers) % 3);
    say_items(peer, strcmp(item, "y") == 0 ? granted : item, locks);
}

/* Sends an item for each lock of the call. */
static void say_of_locks(struct peer *peer, const struct command *command, const char *item) {
    bool is_fenced = has_words(command, COUNTER_SUFFIX "\r\n");
    unsigned keys = 1u + is_fenced + has_words(command, READERS_SUFFIX "\r\n") +
                    has_words(command, WRITER_SUFFIX "\r\n");
    if (is_fenced) {
        say_fenced_items(peer, item, command_keys(command) / keys);
    } else {
        say_items(peer, item, command_keys(command) / keys);
    }
}

/* Answers a call for permits: a refusal with the free permits, a grant with a counter if fenced. */
static bool answer_about_permits(struct peer *peer, const struct command *command,
                                 const char *item) {
    char text[24];
    bool is_granted = strcmp(item, "y") == 0;
    if (!has_words(command, script_sha(SCRIPT_PERMIT)) &&
        !has_words(command, script_text(SCRIPT_PERMIT))) {
        return false;
    }
    if (is_granted && !has_words(command, "\r\n$1\r\n0\r\n")) {
        say_fenced_items(peer, item, command_keys(command));
        return true;
    }
    snprintf(text, sizeof(text), "%sf%x", item, 7 + (unsigned)(peer - peers));
    say_items(peer, is_granted ? item : text, command_keys(command));
    return true;
}

static void answer_in_manner(struct peer *peer, const struct command *command, enum manner manner) {
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
               answer_about_permits(peer, command, manners[manner].item)) {
        return;
    } else if (is_script && manners[manner].item != NULL) {
        say_of_locks(peer, command, manners[manner].item);
        return;
    } else if (text == NULL || (manner == MANNER_NO_SCRIPT && !is_script)) {
        text = "+OK\r\n";
    }
    say_text(peer, text);
}

static bool answer(const struct command *command, void *arg) {
    struct peer *peer = arg;
    if (peer->manner == MANNER_UNKNOWN) {
        say_unknown(peer, command);
    } else if (peer->manner != MANNER_YES || !answer_about_itself(peer, command)) {
        answer_in_manner(peer, command, peer->manner);
    }
    return true;
}

unsigned peers_answer(unsigned index, enum manner manner, unsigned count) {
    struct peer *peer = &peers[index];
    take_connections(peer);
    if (peer->socket >= 0) {
        seat_receive(&peer->seat, peer->socket, INBOX_SIZE);
    }
    peer->manner = manner;
    ssize_t answered = seat_serve(&peer->seat, count, answer, peer);
    CHECK(answered >= 0);
    return (unsigned)answered;
}

void peers_set_chunk(size_t chunk) {
    chunk_size = chunk;
}

void peers_turn(void) {
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        if (peers[i].socket >= 0) {
            seat_send(&peers[i].seat, peers[i].socket, chunk_size > 0 ? chunk_size : SIZE_MAX);
        }
    }
}
