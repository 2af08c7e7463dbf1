#include "masters.h"

#include "command.h"
#include "door.h"
#include "port.h"
#include "seat.h"
#include "wire/script.h"
#include "world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <redlock.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VALUE_MAX 64
#define ANOTHER "another"

struct entry {
    LIST_ENTRY(entry) link;
    char *key;
    size_t length;
    char value[VALUE_MAX];
    uint64_t expires;
};

struct link {
    LIST_ENTRY(link) link;
    struct master *master;
    int fd;
    bool is_known; /* has logged in */
    bool is_mute;  /* an answer was withheld: those that follow would be taken for it */
    struct seat seat;
};

struct master {
    struct sockaddr_in address;
    int reservation; /* keeps the port ours */
    int listener;    /* -1 while it is stopped */
    struct door door;
    enum manner manner;
    bool knows[SCRIPT_COUNT];
    uint64_t counter; /* of all fenced locks */
    LIST_HEAD(, link) links;
    LIST_HEAD(, entry) entries;
    char uris[ADDRESS_COUNT][96];
};

static struct master masters[MASTERS_COUNT];
static unsigned asked, released;
static char name_server[32];

/* ---- listening ---- */

/* Not by socket(): that is for the library's requests. */
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
    CHECK(door_make(&master->door, new_socket(AF_UNIX, SOCK_STREAM),
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
    snprintf(master->uris[ADDRESS_SOCKET], size, "unix:///proc/self/fd/%d", master->door.number);
}

/* It takes whatever it is asked, and says nothing. */
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

void masters_listen(void) {
    make_name_server();
    for (unsigned i = 0; i < MASTERS_COUNT; i++) {
        struct master *master = &masters[i];
        LIST_INIT(&master->links);
        LIST_INIT(&master->entries);
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

/* ---- keys ---- */

static void drop_entry(struct entry *entry) {
    LIST_REMOVE(entry, link);
    free(entry->key);
    free(entry);
}

/* With this value, unless it is NULL. */
static struct entry *find_as(struct master *master, const char *key, size_t length,
                             const char *value) {
    struct entry *entry;
    LIST_FOREACH(entry, &master->entries, link) {
        if (entry->length == length && memcmp(entry->key, key, length) == 0 &&
            (value == NULL || strcmp(entry->value, value) == 0)) {
            if (entry->expires > world_now()) {
                return entry;
            }
            drop_entry(entry);
            return NULL;
        }
    }
    return NULL;
}

static struct entry *find(struct master *master, const char *key, size_t length) {
    return find_as(master, key, length, NULL);
}

static uint64_t after_ms(uint64_t ms) {
    return world_now() + ms * UINT64_C(1000000);
}

static void set(struct master *master, const char *key, size_t length, const char *value,
                uint64_t ttl_ms) {
    struct entry *entry = calloc(1, sizeof(*entry));
    CHECK(entry != NULL);
    entry->key = malloc(length);
    CHECK(entry->key != NULL);
    memcpy(entry->key, key, length);
    entry->length = length;
    snprintf(entry->value, sizeof(entry->value), "%s", value);
    entry->expires = after_ms(ttl_ms);
    LIST_INSERT_HEAD(&master->entries, entry, link);
}

/* ---- commands ---- */

static void say(struct link *link, const char *text) {
    if (link->is_mute) {
        return;
    }
    seat_say_text(&link->seat, text);
    seat_send(&link->seat, link->fd, SIZE_MAX);
}

static uint64_t number(const struct command *command, size_t index) {
    char text[24];
    command_text(command, index, text, sizeof(text));
    return strtoull(text, NULL, 10);
}

static const char *do_set(struct master *master, const struct command *command) {
    const struct argument *key = &command->arguments[1];
    char value[VALUE_MAX];
    CHECK(command->count == 6);
    if (find(master, key->bytes, key->length) != NULL) {
        return "$-1\r\n";
    }
    command_text(command, 2, value, sizeof(value));
    set(master, key->bytes, key->length, value, number(command, 5));
    return "+OK\r\n";
}

/* Who has the key, if it is somebody else; NULL: nobody has. */
static const struct entry *other_holder(struct master *master, const struct argument *key,
                                        const char *value) {
    const struct entry *entry = find(master, key->bytes, key->length);
    return entry != NULL && strcmp(entry->value, value) != 0 ? entry : NULL;
}

static int say_held(const struct entry *entry, char *item) {
    return sprintf(item, "h%" PRIu64, (entry->expires - world_now()) / 1000000);
}

/* One counter is enough for all keys. */
static int count_up(struct master *master, uint64_t fence, uint64_t step, char *item) {
    master->counter += step;
    master->counter = master->counter > fence ? master->counter : fence;
    return sprintf(item, "y%" PRIu64, master->counter);
}

/* SCRIPT_TAKE: an item for each lock, of some keys and seven arguments. */
static int do_takes(struct master *master, const struct command *command, char *items) {
    size_t key = 3;
    size_t first = 3 + command_keys(command);
    int length = 0;
    for (; first + 7 <= command->count; first += 7) {
        size_t count = number(command, first + 2);
        bool is_fenced = number(command, first + 3);
        const struct argument *keys = &command->arguments[key];
        const struct entry *other = NULL;
        char value[VALUE_MAX];
        command_text(command, first, value, sizeof(value));
        for (size_t i = 0; i < count && other == NULL; i++) {
            other = other_holder(master, &keys[i], value);
        }
        for (size_t i = 0; i < count && other == NULL; i++) {
            if (find(master, keys[i].bytes, keys[i].length) == NULL) {
                set(master, keys[i].bytes, keys[i].length, value, number(command, first + 1));
            }
        }
        char *item = items + length;
        length += other != NULL ? say_held(other, item)
                  : is_fenced   ? count_up(master, number(command, first + 4),
                                           number(command, first + 5), item)
                                : sprintf(item, "y");
        key += is_fenced ? 2 * count : count;
    }
    return length;
}

/* Which of a semaphore's permits nobody has, four a digit. */
static int write_free(struct master *master, const struct argument *key, size_t permits,
                      char *item) {
    const char *colon = memrchr(key->bytes, ':', key->length);
    int length = sprintf(item, "f");
    unsigned digit = 0;
    for (size_t i = 0; i < permits; i++) {
        char name[64];
        int size =
            snprintf(name, sizeof(name), "%.*s:%zu", (int)(colon - key->bytes), key->bytes, i);
        digit |= (unsigned)(find(master, name, (size_t)size) == NULL) << i % 4;
        if (i % 4 == 3 || i + 1 == permits) {
            length += sprintf(item + length, "%x", digit);
            digit = 0;
        }
    }
    return length;
}

/* SCRIPT_KEEP: key, counter; token, TTL, fence, the counter's TTL. */
static int do_keep(struct master *master, enum script script, const struct command *command,
                   size_t i, char *item) {
    (void)script;
    size_t first = 3 + command_keys(command) + 4 * i;
    const struct argument *key = &command->arguments[3 + 2 * i];
    struct entry *entry = find(master, key->bytes, key->length);
    char value[VALUE_MAX];
    command_text(command, first, value, sizeof(value));
    const struct entry *other = other_holder(master, key, value);
    if (entry == NULL || other != NULL) {
        return other != NULL ? say_held(other, item) : sprintf(item, "m");
    }
    if (entry->expires < after_ms(number(command, first + 1))) {
        entry->expires = after_ms(number(command, first + 1));
    }
    return count_up(master, number(command, first + 2), 0, item);
}

/* The item of a permit: key; token, TTL, fence or 0, counter's TTL, number of permits. */
static int do_permit(struct master *master, enum script script, const struct command *command,
                     size_t i, char *item) {
    (void)script;
    size_t first = 3 + command_keys(command) + 5 * i;
    const struct argument *key = &command->arguments[3 + i];
    uint64_t fence = number(command, first + 2);
    char value[VALUE_MAX];
    command_text(command, first, value, sizeof(value));
    const struct entry *other = other_holder(master, key, value);
    if (other != NULL) {
        int length = say_held(other, item);
        return length + write_free(master, key, number(command, first + 4), item + length);
    }
    if (find(master, key->bytes, key->length) == NULL) {
        set(master, key->bytes, key->length, value, number(command, first + 1));
    }
    return fence == 0 ? sprintf(item, "y") : count_up(master, fence, 1, item);
}

/* Key, readers, writer, and counter if it is fenced; token, TTL, note, fence, counter's TTL. */
static int do_write_item(struct master *master, enum script script, const struct command *command,
                         size_t i, char *item) {
    bool is_fenced = script == SCRIPT_WRITE_FENCED;
    size_t first = 3 + command_keys(command) + (is_fenced ? 5 : 3) * i;
    const struct argument *key = &command->arguments[3 + (is_fenced ? 4 : 3) * i];
    const struct entry *entry = find(master, key->bytes, key->length);
    char value[VALUE_MAX];
    command_text(command, first, value, sizeof(value));
    if (entry != NULL && strcmp(entry->value, value) != 0) {
        return say_held(entry, item);
    }
    if (entry == NULL) {
        set(master, key->bytes, key->length, value, number(command, first + 1));
    }
    if (!is_fenced) {
        return sprintf(item, "y");
    }
    master->counter++;
    master->counter =
        master->counter > number(command, first + 3) ? master->counter : number(command, first + 3);
    return sprintf(item, "y%" PRIu64, master->counter);
}

static void extend(struct entry *entry, uint64_t ttl_ms) {
    entry->expires = entry->expires > after_ms(ttl_ms) ? entry->expires : after_ms(ttl_ms);
}

/* Each reader is an entry of its own under the name of the list, with its value. */
static int end_share(struct master *master, const struct argument *readers, struct entry *key,
                     struct entry *reader, char *item) {
    drop_entry(reader);
    if (find(master, readers->bytes, readers->length) == NULL) {
        released++;
        drop_entry(key);
    }
    return sprintf(item, "y");
}

/* Key, readers, and the writer for SCRIPT_SHARE; value, TTL, and the step for SCRIPT_SHARE. */
static int do_shared_item(struct master *master, enum script script, const struct command *command,
                          size_t i, char *item) {
    bool is_share = script == SCRIPT_SHARE;
    size_t arguments = is_share ? 3 : script == SCRIPT_SHARE_KEEP ? 2 : 1;
    size_t first = 3 + command_keys(command) + arguments * i;
    const struct argument *key = &command->arguments[3 + (is_share ? 3 : 2) * i];
    const struct argument *readers = key + 1;
    struct entry *entry = find(master, key->bytes, key->length);
    char value[VALUE_MAX];
    command_text(command, first, value, sizeof(value));
    if (entry != NULL && strcmp(entry->value, REDLOCK_SHARED_VALUE) != 0) {
        return say_held(entry, item);
    }
    struct entry *reader = find_as(master, readers->bytes, readers->length, value);
    if (!is_share && (entry == NULL || reader == NULL)) {
        return sprintf(item, "m");
    }
    if (script == SCRIPT_SHARE_END) {
        return end_share(master, readers, entry, reader, item);
    }
    uint64_t ttl_ms = number(command, first + 1);
    if (entry == NULL) {
        set(master, key->bytes, key->length, REDLOCK_SHARED_VALUE, ttl_ms);
        entry = find(master, key->bytes, key->length);
    }
    if (reader == NULL) {
        set(master, readers->bytes, readers->length, value, ttl_ms);
    } else {
        extend(reader, ttl_ms);
    }
    extend(entry, ttl_ms);
    return sprintf(item, "y");
}

/* The item of one key in a script's answer. */
static int do_item(struct master *master, enum script script, const struct command *command,
                   size_t i, char *item) {
    size_t keys = command_keys(command);
    size_t first = 3 + keys + (script == SCRIPT_RELEASE ? i : 2 * i);
    const struct argument *key = &command->arguments[3 + i];
    struct entry *entry = find(master, key->bytes, key->length);
    char value[VALUE_MAX];
    command_text(command, first, value, sizeof(value));
    if (entry == NULL) {
        return sprintf(item, "m");
    }
    if (strcmp(entry->value, value) != 0) {
        return say_held(entry, item);
    }
    if (script == SCRIPT_RELEASE) {
        released++;
        drop_entry(entry);
    } else if (script == SCRIPT_STAY) {
        released++;
        snprintf(entry->value, sizeof(entry->value), "nobody");
        entry->expires = after_ms(number(command, first + 1));
    } else if (entry->expires < after_ms(number(command, first + 1))) {
        entry->expires = after_ms(number(command, first + 1));
    }
    return sprintf(item, "y");
}

static enum script script_of(const struct command *command) {
    char text[4096];
    command_text(command, 1, text, sizeof(text));
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        if (strncmp(text, script_sha(i), SCRIPT_SHA_LENGTH) == 0 ||
            strcmp(text, script_text(i)) == 0) {
            return i;
        }
    }
    check_failed(__FILE__, __LINE__, "it is a script of the library's");
}

static int do_inspection(struct master *master, const struct command *command, char *item) {
    const struct argument *key = &command->arguments[3];
    const struct entry *entry = find(master, key->bytes, key->length);
    uint64_t ttl_ms = entry != NULL ? (entry->expires - world_now()) / 1000000 : 0;
    return sprintf(item, "%c %" PRIu64 " %" PRIu64 " 0 %s", entry != NULL ? 'h' : 'f', ttl_ms,
                   master->counter, entry != NULL ? entry->value : "");
}

static int do_items(struct master *master, enum script script, const struct command *command,
                    char *items) {
    static const struct {
        size_t keys; /* of each lock */
        int (*run)(struct master *master, enum script script, const struct command *command,
                   size_t i, char *item);
    } forms[SCRIPT_COUNT] = {
        [SCRIPT_RELEASE] = {1, do_item},
        [SCRIPT_RENEW] = {1, do_item},
        [SCRIPT_STAY] = {1, do_item},
        [SCRIPT_KEEP] = {2, do_keep},
        [SCRIPT_PERMIT] = {1, do_permit},
        [SCRIPT_SHARE] = {3, do_shared_item},
        [SCRIPT_SHARE_KEEP] = {2, do_shared_item},
        [SCRIPT_SHARE_END] = {2, do_shared_item},
        [SCRIPT_WRITE] = {3, do_write_item},
        [SCRIPT_WRITE_FENCED] = {4, do_write_item},
    };
    int length = 0;
    if (script == SCRIPT_INSPECT) {
        return do_inspection(master, command, items);
    }
    if (script == SCRIPT_TAKE) {
        return do_takes(master, command, items);
    }
    for (size_t i = 0; forms[script].run != NULL && i < command_keys(command) / forms[script].keys;
         i++) {
        length += forms[script].run(master, script, command, i, items + length);
    }
    return length;
}

static const char *do_script(struct master *master, const struct command *command) {
    static char answer[2 * SCRIPT_MAX_KEYS * 24 + 16];
    char items[2 * SCRIPT_MAX_KEYS * 24];
    enum script script = script_of(command);
    if (command_is(command, "EVAL", NULL)) {
        master->knows[script] = true;
    } else if (!master->knows[script]) {
        return "-NOSCRIPT No matching script.\r\n";
    }
    int length = do_items(master, script, command, items);
    snprintf(answer, sizeof(answer), "$%d\r\n%.*s\r\n", length, length, items);
    return answer;
}

/* It has been up, and marked, for long. */
static const char *do_beat(void) {
    static char answer[96];
    char text[64];
    int length = snprintf(text, sizeof(text), "%" PRIu64 " 900000000000 1", world_now() / 1000);
    snprintf(answer, sizeof(answer), "$%d\r\n%s\r\n", length, text);
    return answer;
}

static const char *do_info(const struct master *master) {
    static char answer[160];
    char text[128];
    int length = snprintf(text, sizeof(text),
                          "run_id:run-of-%d\r\nuptime_in_seconds:900000\r\nrole:master\r\n"
                          "maxmemory_policy:noeviction\r\n",
                          (int)(master - masters));
    snprintf(answer, sizeof(answer), "$%d\r\n%s\r\n", length, text);
    return answer;
}

static const char *do_other(struct master *master, struct link *link,
                            const struct command *command) {
    if (command_is(command, "AUTH", NULL)) {
        char password[32];
        command_text(command, command->count - 1, password, sizeof(password));
        CHECK(strcmp(password, MASTERS_PASSWORD) == 0);
        link->is_known = master->manner != MANNER_LOCKED;
        return link->is_known ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n";
    }
    if (command_is(command, "SCRIPT", "LOAD")) {
        for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
            master->knows[i] |= command->arguments[2].length == strlen(script_text(i)) &&
                                memcmp(command->arguments[2].bytes, script_text(i),
                                       command->arguments[2].length) == 0;
        }
        return "$2\r\nok\r\n";
    }
    if (command_is(command, "WAIT", NULL)) {
        return ":1\r\n"; /* each has one replica */
    }
    CHECK(command_is(command, "SELECT", "1") || command_is(command, "CLIENT", NULL));
    return "+OK\r\n";
}

static void obey(struct master *master, struct link *link, const struct command *command) {
    bool is_set = command_is(command, "SET", NULL);
    bool is_beat = command_is_script(command) && script_of(command) == SCRIPT_BEAT;
    bool is_request = is_set || (command_is_script(command) && !is_beat);
    asked += is_request;
    if (is_request && master->manner == MANNER_ERROR) {
        say(link, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    } else if (is_request && master->manner == MANNER_NONSENSE) {
        say(link, ":17\r\n");
    } else if (is_request && master->manner == MANNER_LOCKED && !link->is_known) {
        say(link, "-NOAUTH Authentication required.\r\n");
    } else {
        const char *answer = is_set                              ? do_set(master, command)
                             : is_request                        ? do_script(master, command)
                             : is_beat                           ? do_beat()
                             : command_is(command, "INFO", NULL) ? do_info(master)
                                                                 : do_other(master, link, command);
        link->is_mute |= master->manner == MANNER_MUTE;
        say(link, answer);
    }
}

/* ---- connections ---- */

static void drop_link(struct link *link) {
    LIST_REMOVE(link, link);
    close(link->fd);
    seat_finish(&link->seat);
    free(link);
}

static bool accept_from(struct master *master, int listener) {
    int on = 1;
    int fd = listener < 0 ? -1 : door_accept(listener);
    if (fd < 0) {
        return false;
    }
    struct link *link = calloc(1, sizeof(*link));
    CHECK(link != NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    link->fd = fd;
    link->master = master;
    CHECK(seat_init(&link->seat));
    LIST_INSERT_HEAD(&master->links, link, link);
    return true;
}

static void accept_all(struct master *master) {
    while (accept_from(master, master->listener) || accept_from(master, master->door.listener)) {
    }
}

static bool answer(const struct command *command, void *arg) {
    struct link *link = arg;
    obey(link->master, link, command);
    return true;
}

/* True when something had arrived. */
static bool serve(struct link *link) {
    ssize_t arrived = seat_receive(&link->seat, link->fd, SIZE_MAX);
    if (arrived == 0) {
        drop_link(link);
        return true;
    }
    CHECK(seat_serve(&link->seat, SIZE_MAX, answer, link) >= 0);
    return arrived > 0;
}

static bool master_turn(struct master *master) {
    struct link *link, *next;
    bool was_busy = accept_from(master, master->listener);
    was_busy |= accept_from(master, master->door.listener);
    for (link = LIST_FIRST(&master->links); link != NULL; link = next) {
        next = LIST_NEXT(link, link);
        was_busy |= master->manner != MANNER_DEAF && serve(link);
    }
    return was_busy;
}

bool masters_turn(void) {
    bool was_busy = false;
    for (unsigned i = 0; i < MASTERS_COUNT; i++) {
        was_busy |= master_turn(&masters[i]);
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
            CHECK(door_set(&master->door, false));
        }
    }
    masters_cut(mask);
}

void masters_start(unsigned mask) {
    FOR_EACH(master, mask) {
        if (master->listener < 0) {
            master->listener = listen_at(&master->address);
            CHECK(door_set(&master->door, true));
        }
    }
}

void masters_forget_scripts(unsigned mask) {
    FOR_EACH(master, mask) {
        memset(master->knows, 0, sizeof(master->knows));
    }
}

void masters_count(unsigned mask, uint64_t counter) {
    FOR_EACH(master, mask) {
        master->counter = counter;
    }
}

void masters_forget(unsigned mask, const char *key) {
    FOR_EACH(master, mask) {
        struct entry *entry = find(master, key, strlen(key));
        if (entry != NULL) {
            drop_entry(entry);
        }
    }
}

void masters_occupy(unsigned mask, const char *key, unsigned ttl_ms) {
    masters_forget(mask, key);
    FOR_EACH(master, mask) {
        set(master, key, strlen(key), ANOTHER, ttl_ms);
    }
}

unsigned masters_having(const char *key) {
    unsigned count = 0;
    FOR_EACH(master, MASTERS_ALL) {
        count += find(master, key, strlen(key)) != NULL;
    }
    return count;
}

unsigned masters_having_any(void) {
    unsigned count = 0;
    FOR_EACH(master, MASTERS_ALL) {
        const struct entry *entry;
        LIST_FOREACH(entry, &master->entries, link) {
            count += strcmp(entry->value, ANOTHER) != 0 && entry->expires > world_now();
        }
    }
    return count;
}

unsigned masters_released(void) {
    return released;
}

unsigned masters_asked(void) {
    return asked;
}

void masters_reset(void) {
    asked = released = 0;
    FOR_EACH(master, MASTERS_ALL) {
        accept_all(master);
        while (!LIST_EMPTY(&master->entries)) {
            drop_entry(LIST_FIRST(&master->entries));
        }
    }
    masters_cut(MASTERS_ALL);
    masters_start(MASTERS_ALL);
    masters_behave(MASTERS_ALL, MANNER_WELL);
    masters_forget_scripts(MASTERS_ALL);
    masters_count(MASTERS_ALL, 0);
}
