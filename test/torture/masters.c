#include "masters.h"

#include "command.h"
#include "fake_connection.h"
#include "left.h"
#include "port.h"
#include "store.h"
#include "unix_listener.h"
#include "wire/command.h"
#include "wire/script.h"
#include "world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <redlock.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANOTHER "another"

/*
 * The masters' age, longer than the longest TTL, so that guards trust them. Runs start at 1000 s.
 */
#define LONG_MS 500000

/* The maximum of an answer: a text and its frame. */
#define ANSWER_MAX (STORE_TEXT_MAX + 32)

#define CHANNEL_MAX 64

/* The maximum of the masters' descriptors, links included. */
#define DESCRIPTORS_MAX 256

struct link {
    LIST_ENTRY(link) link;
    struct master *master;
    int fd;
    bool is_readable;          /* in this turn */
    bool is_known;             /* has logged in */
    bool is_mute;              /* an answer was withheld, so a later one would be mistaken for it */
    char channel[CHANNEL_MAX]; /* the channel to which it has subscribed; "": none */
    struct fake_connection connection;
};

struct master {
    struct sockaddr_in address;
    int reservation; /* the socket that reserves the port */
    int listener;    /* -1 while stopped */
    struct unix_listener unix_listener;
    bool is_called, is_called_at_unix; /* whether a client connects in this turn */
    enum manner manner;
    bool watches; /* whether the next direct change of a key must be notified */
    struct store store;
    LIST_HEAD(, link) links;
    char uris[ADDRESS_COUNT][96];
};

static struct master masters[MASTERS_COUNT];
static unsigned asked, released, pushed, probed;
static char name_server[32];

/* ---- listening ---- */

/* Makes a socket without socket(), which counts the library's requests. */
static int new_socket(int family, int type) {
    int fd = (int)syscall(SYS_socket, family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    return fd;
}

static int listen_at(const struct sockaddr_in *address) {
    int fd = new_socket(AF_INET, SOCK_STREAM);
    CHECK(port_listen(fd, address) == 0);
    return fd;
}

static void listen_on_socket(struct master *master) {
    CHECK(unix_listener_make(&master->unix_listener, new_socket(AF_UNIX, SOCK_STREAM),
                             new_socket(AF_UNIX, SOCK_STREAM), -1));
}

static void write_uris(struct master *master) {
    const size_t size = sizeof(master->uris[0]);
    unsigned port = ntohs(master->address.sin_port);
    snprintf(master->uris[ADDRESS_NUMBER], size, "redis://127.0.0.1:%u", port);
    snprintf(master->uris[ADDRESS_NAME], size, "redis://localhost:%u", port);
    snprintf(master->uris[ADDRESS_ASKED], size, "redis://nobody.test:%u", port);
    snprintf(master->uris[ADDRESS_LOGIN], size, "redis://ali:" MASTERS_PASSWORD "@127.0.0.1:%u/1",
             port);
    snprintf(master->uris[ADDRESS_SOCKET], size, "unix:///proc/self/fd/%d",
             master->unix_listener.number);
}

/* Makes the name server, which receives all questions and answers none. */
static void make_name_server(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = new_socket(AF_INET, SOCK_DGRAM);
    CHECK(bind(fd, (struct sockaddr *)&address, length) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    snprintf(name_server, sizeof(name_server), "127.0.0.1:%u", ntohs(address.sin_port));
}

const char *masters_name_server(void) {
    return name_server;
}

static uint64_t read_clock(const void *owner) {
    (void)owner;
    return world_now();
}

static unsigned publish(const void *owner, const struct word *channel, const struct word *text);
static unsigned subscribers(const void *owner, const struct word *channel);

void masters_listen(void) {
    make_name_server();
    for (unsigned i = 0; i < MASTERS_COUNT; i++) {
        struct master *master = &masters[i];
        LIST_INIT(&master->links);
        store_init(&master->store, read_clock, master);
        master->store.publish = publish;
        master->store.subscribers = subscribers;
        master->reservation = new_socket(AF_INET, SOCK_STREAM);
        CHECK(port_reserve(master->reservation, &master->address) == 0);
        master->listener = listen_at(&master->address);
        listen_on_socket(master);
        write_uris(master);
    }
}

const char *masters_uri(unsigned master, enum address address) {
    return masters[master].uris[address];
}

/* ---- commands ---- */

static void say(struct link *link, const char *text) {
    if (link->is_mute) {
        return;
    }
    fake_connection_say_text(&link->connection, text);
    fake_connection_send(&link->connection, link->fd, SIZE_MAX);
}

/* Sends a message; without a text, the confirmation of a subscription. */
static void say_to_subscriber(struct link *link, const char *kind, const struct word *text) {
    link->is_mute |= link->master->manner == MANNER_MUTE;
    if (link->is_mute) {
        return;
    }
    fake_connection_say_text(&link->connection, "*3\r\n");
    fake_connection_say_bulk(&link->connection, kind, strlen(kind));
    fake_connection_say_bulk(&link->connection, link->channel, strlen(link->channel));
    if (text != NULL) {
        fake_connection_say_bulk(&link->connection, text->text, text->length);
    } else {
        fake_connection_say_text(&link->connection, ":1\r\n");
    }
    fake_connection_send(&link->connection, link->fd, SIZE_MAX);
}

/* Handles a subscription, the last command on its connection. */
static void subscribe(struct link *link, const struct words *words) {
    const struct word *name = &words->word[1];
    CHECK(words->count == 2 && link->channel[0] == '\0');
    CHECK(name->length > 0 && name->length < sizeof(link->channel));
    memcpy(link->channel, name->text, name->length);
    link->channel[name->length] = '\0';
    say_to_subscriber(link, "subscribe", NULL);
}

/* Sends a text to the subscribers of a channel, for the store. Returns their number. */
static unsigned publish(const void *owner, const struct word *channel, const struct word *text) {
    const struct master *master = owner;
    unsigned count = 0;
    struct link *link;
    LIST_FOREACH(link, &master->links, link) {
        if (link->channel[0] != '\0' && word_is(channel, link->channel)) {
            say_to_subscriber(link, "message", text);
            count++;
        }
    }
    bool is_probe = strncmp(text->text, "probe:", 6) == 0;
    *(is_probe ? &probed : &pushed) += count;
    return count;
}

static unsigned subscribers(const void *owner, const struct word *channel) {
    const struct master *master = owner;
    unsigned count = 0;
    struct link *link;
    LIST_FOREACH(link, &master->links, link) {
        count += link->channel[0] != '\0' && word_is(channel, link->channel);
    }
    return count;
}

/* Notifies of a directly changed key, if some key is watched. */
static void notify_change(struct master *master, const char *key) {
    struct link *link;
    LIST_FOREACH(link, &master->links, link) {
        link->is_mute |= master->manner == MANNER_MUTE;
        if (master->watches && link->channel[0] != '\0' && !link->is_mute) {
            fake_connection_say_text(
                &link->connection, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n");
            fake_connection_say_bulk(&link->connection, key, strlen(key));
            fake_connection_send(&link->connection, link->fd, SIZE_MAX);
        }
    }
    master->watches = false;
}

static void copy_words(struct words *words, const struct command *command) {
    CHECK(command->count <= WORDS_MAX);
    words->count = (unsigned)command->count;
    for (unsigned i = 0; i < words->count; i++) {
        words->word[i] = (struct word){command->arguments[i].bytes, command->arguments[i].length};
    }
}

/* Returns the answer in its wire form. */
static const char *encode(const struct reply *reply) {
    static char answer[ANSWER_MAX];
    switch (reply->type) {
    case REPLY_NIL:
        return "$-1\r\n";
    case REPLY_INTEGER:
        snprintf(answer, sizeof(answer), ":%" PRId64 "\r\n", reply->integer);
        break;
    case REPLY_STRING:
        snprintf(answer, sizeof(answer), "$%zu\r\n%.*s\r\n", reply->length, (int)reply->length,
                 reply->text);
        break;
    default:
        snprintf(answer, sizeof(answer), "%c%.*s\r\n", reply->type == REPLY_STATUS ? '+' : '-',
                 (int)reply->length, reply->text);
        break;
    }
    return answer;
}

static bool calls(const struct words *words, enum script script) {
    return (word_is(&words->word[0], "EVALSHA") && word_is(&words->word[1], script_sha(script))) ||
           (word_is(&words->word[0], "EVAL") && word_is(&words->word[1], script_text(script)));
}

/* Counts the keys that a call has released: the items 'y' of its answer. */
static unsigned count_released(const struct words *words, const struct reply *reply) {
    unsigned count = 0;
    bool is_release = calls(words, SCRIPT_RELEASE) || calls(words, SCRIPT_LEAVE) ||
                      calls(words, SCRIPT_STAY) || calls(words, SCRIPT_SHARE_RELEASE) ||
                      calls(words, SCRIPT_SHARE_LEAVE);
    if (is_release && reply->type == REPLY_STRING) {
        for (size_t i = 0; i < reply->length; i++) {
            count += reply->text[i] == 'y';
        }
    }
    return count;
}

/* Runs a command on keys or scripts, and checks that the library sends no wrong one. */
static const char *do_stored(struct master *master, const struct words *words) {
    struct reply reply = store_run(&master->store, words);
    CHECK(reply.type != REPLY_ERROR || strncmp(reply.text, "ERR", 3) != 0);
    CHECK(!word_is(&words->word[0], "SET") || words->count == 6);
    released += count_released(words, &reply);
    return encode(&reply);
}

/* Begins to watch a key, and answers with the first bytes of its value. */
static const char *do_look(struct master *master, const struct words *words) {
    const struct word *name = &words->word[1];
    const struct store_key *key = store_find(&master->store, name->text, name->length);
    struct reply reply = {.type = REPLY_STRING, .text = ""};
    master->watches = true;
    if (key != NULL) {
        reply.text = key->value;
        reply.length = key->value_length < TOKEN_LENGTH ? key->value_length : TOKEN_LENGTH;
    }
    return encode(&reply);
}

static const char *do_other(struct master *master, struct link *link, const struct command *command,
                            const struct words *words) {
    if (command_is(command, "AUTH", NULL)) {
        char password[32];
        command_text(command, command->count - 1, password, sizeof(password));
        CHECK(strcmp(password, MASTERS_PASSWORD) == 0);
        link->is_known = master->manner != MANNER_LOCKED;
        return link->is_known ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n";
    }
    if (command_is(command, "CLIENT", "ID")) {
        return ":7\r\n";
    }
    if (command_is(command, "GETRANGE", NULL)) {
        return do_look(master, words);
    }
    if (command_is(command, "SELECT", "1") || command_is(command, "CLIENT", NULL)) {
        return "+OK\r\n"; /* one database is used for all */
    }
    return do_stored(master, words);
}

static void obey(struct master *master, struct link *link, const struct command *command) {
    struct words words;
    CHECK(link->channel[0] == '\0'); /* SUBSCRIBE is the last command on a connection */
    copy_words(&words, command);
    bool is_script =
        command_is_script(command) && !calls(&words, SCRIPT_BEAT) && !calls(&words, SCRIPT_PROBE);
    bool is_request = is_script || command_is(command, "SET", NULL);
    asked += is_request;
    if (is_request && master->manner == MANNER_ERROR) {
        say(link, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    } else if (is_request && master->manner == MANNER_NONSENSE) {
        say(link, ":17\r\n");
    } else if (is_request && master->manner == MANNER_LOCKED && !link->is_known) {
        say(link, "-NOAUTH Authentication required.\r\n");
    } else if (command_is(command, "SUBSCRIBE", NULL) && master->manner == MANNER_PRIVATE) {
        say(link, "-NOPERM this user has no permissions to access one of the channels used\r\n");
    } else if (command_is(command, "SUBSCRIBE", NULL)) {
        subscribe(link, &words);
    } else {
        const char *answer =
            is_request ? do_stored(master, &words) : do_other(master, link, command, &words);
        link->is_mute |= master->manner == MANNER_MUTE;
        say(link, answer);
    }
}

/* ---- connections ---- */

static void drop_link(struct link *link) {
    LIST_REMOVE(link, link);
    close(link->fd);
    fake_connection_finish(&link->connection);
    free(link);
}

static bool accept_from(struct master *master, int listener) {
    int on = 1;
    int fd = listener < 0 ? -1 : unix_listener_accept(listener);
    if (fd < 0) {
        return false;
    }
    struct link *link = calloc(1, sizeof(*link));
    CHECK(link != NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    link->fd = fd;
    link->master = master;
    link->is_readable = true; /* not known yet */
    CHECK(fake_connection_init(&link->connection));
    LIST_INSERT_HEAD(&master->links, link, link);
    return true;
}

static void accept_all(struct master *master) {
    while (accept_from(master, master->listener) ||
           accept_from(master, master->unix_listener.socket)) {
    }
}

static bool answer(const struct command *command, void *arg) {
    struct link *link = arg;
    obey(link->master, link, command);
    return true;
}

/* Answers the commands of a link. Returns whether bytes had arrived. */
static bool serve(struct link *link) {
    ssize_t arrived = fake_connection_receive(&link->connection, link->fd, SIZE_MAX);
    if (arrived == 0) {
        drop_link(link);
        return true;
    }
    CHECK(fake_connection_serve(&link->connection, SIZE_MAX, answer, link) >= 0);
    return arrived > 0;
}

static bool master_turn(struct master *master) {
    struct link *link, *next;
    bool was_busy = master->is_called && accept_from(master, master->listener);
    was_busy |= master->is_called_at_unix && accept_from(master, master->unix_listener.socket);
    for (link = LIST_FIRST(&master->links); link != NULL; link = next) {
        next = LIST_NEXT(link, link);
        was_busy |= master->manner != MANNER_DEAF && link->is_readable && serve(link);
    }
    return was_busy;
}

/*
 * Finds what arrived for all masters with one system call, because in most turns nothing did.
 * Returns whether anything did. Clients do not run during a turn, so nothing arrives later in it.
 */
static bool look_for_arrivals(void) {
    struct pollfd fds[DESCRIPTORS_MAX];
    bool *flags[DESCRIPTORS_MAX];
    unsigned count = 0;
    for (struct master *master = masters; master < masters + MASTERS_COUNT; master++) {
        CHECK(count + 2 <= DESCRIPTORS_MAX);
        fds[count] = (struct pollfd){.fd = master->listener, .events = POLLIN};
        flags[count++] = &master->is_called;
        fds[count] = (struct pollfd){.fd = master->unix_listener.socket, .events = POLLIN};
        flags[count++] = &master->is_called_at_unix;
        for (struct link *link = LIST_FIRST(&master->links); link != NULL;
             link = LIST_NEXT(link, link)) {
            CHECK(count < DESCRIPTORS_MAX);
            fds[count] = (struct pollfd){.fd = link->fd, .events = POLLIN};
            flags[count++] = &link->is_readable;
        }
    }
    int arrivals = poll(fds, count, 0);
    CHECK(arrivals >= 0);
    for (unsigned i = 0; i < count; i++) {
        *flags[i] = fds[i].revents != 0;
    }
    return arrivals > 0;
}

bool masters_turn(void) {
    bool was_busy = false;
    if (look_for_arrivals()) {
        for (unsigned i = 0; i < MASTERS_COUNT; i++) {
            was_busy |= master_turn(&masters[i]);
        }
    }
    return was_busy;
}

/* ---- fates ---- */

#define FOR_EACH(master, mask)                                                                     \
    for (struct master *master = masters; master < masters + MASTERS_COUNT; master++)              \
        if ((mask)&1u << (master - masters))

void masters_behave(unsigned mask, enum manner manner) {
    FOR_EACH(master, mask) {
        master->manner = manner;
    }
}

void masters_cut(unsigned mask) {
    FOR_EACH(master, mask) {
        while (!LIST_EMPTY(&master->links)) {
            drop_link(LIST_FIRST(&master->links));
        }
    }
}

void masters_stop(unsigned mask) {
    FOR_EACH(master, mask) {
        if (master->listener >= 0) {
            accept_all(master);
            close(master->listener);
            master->listener = -1;
            CHECK(unix_listener_set(&master->unix_listener, false));
        }
    }
    masters_cut(mask);
}

void masters_start(unsigned mask) {
    FOR_EACH(master, mask) {
        if (master->listener < 0) {
            master->listener = listen_at(&master->address);
            CHECK(unix_listener_set(&master->unix_listener, true));
        }
    }
}

void masters_forget_scripts(unsigned mask) {
    FOR_EACH(master, mask) {
        master->store.scripts = 0;
    }
}

void masters_count(unsigned mask, const char *key, uint64_t counter) {
    char name[64], text[24];
    snprintf(name, sizeof(name), "%s" COUNTER_SUFFIX, key);
    snprintf(text, sizeof(text), "%" PRIu64, counter);
    FOR_EACH(master, mask) {
        store_put(&master->store, name, text, 0);
    }
}

void masters_forget(unsigned mask, const char *key) {
    FOR_EACH(master, mask) {
        struct store_key *found = store_find(&master->store, key, strlen(key));
        if (found != NULL) {
            store_remove(&master->store, found);
        }
        notify_change(master, key);
    }
}

void masters_occupy(unsigned mask, const char *key, unsigned ttl_ms) {
    FOR_EACH(master, mask) {
        store_put(&master->store, key, ANOTHER, ttl_ms);
        notify_change(master, key);
    }
}

void masters_give_up(unsigned mask, const char *key) {
    const char *script = script_text(SCRIPT_RELEASE);
    const struct words words = {.count = 5,
                                .word = {{"EVAL", 4},
                                         {script, strlen(script)},
                                         {"1", 1},
                                         {key, strlen(key)},
                                         {ANOTHER, strlen(ANOTHER)}}};
    FOR_EACH(master, mask) {
        store_run(&master->store, &words);
        notify_change(master, key);
    }
}

unsigned masters_having(const char *key) {
    unsigned count = 0;
    FOR_EACH(master, MASTERS_ALL) {
        count += store_find(&master->store, key, strlen(key)) != NULL;
    }
    return count;
}

unsigned masters_queued(const char *key) {
    unsigned count = 0;
    FOR_EACH(master, MASTERS_ALL) {
        count += left_waiters(&master->store, key);
    }
    return count;
}

static bool is_another(const struct store_key *key) {
    return key->value_length == strlen(ANOTHER) &&
           memcmp(key->value, ANOTHER, key->value_length) == 0;
}

unsigned masters_having_any(void) {
    unsigned count = 0;
    FOR_EACH(master, MASTERS_ALL) {
        for (unsigned i = 0; i < master->store.key_count; i++) {
            const struct store_key *key = store_nth(&master->store, i);
            count += !is_another(key) && left_is_held(&master->store, key);
        }
    }
    return count;
}

unsigned masters_released(void) {
    return released;
}

unsigned masters_pushed(void) {
    return pushed;
}

unsigned masters_probed(void) {
    return probed;
}

unsigned masters_asked(void) {
    return asked;
}

/* Initializes a server that has long been up, without keys, and with one replica. */
static void reset_store(struct store *store, unsigned index) {
    store_forget(store, NULL);
    snprintf(store->run_id, sizeof(store->run_id), "%040u", index);
    store->started_ms = store_now_ms(store) - LONG_MS;
    store->replicas = 1;
    store_put_marker(store, store->run_id, LONG_MS);
}

void masters_reset(void) {
    asked = released = pushed = probed = 0;
    FOR_EACH(master, MASTERS_ALL) {
        accept_all(master);
        master->watches = false;
        reset_store(&master->store, (unsigned)(master - masters));
    }
    masters_cut(MASTERS_ALL);
    masters_start(MASTERS_ALL);
    masters_behave(MASTERS_ALL, MANNER_WELL);
    masters_forget_scripts(MASTERS_ALL);
}

unsigned masters_watching(void) {
    unsigned count = 0;
    FOR_EACH(master, MASTERS_ALL) {
        count += master->watches;
    }
    return count;
}
