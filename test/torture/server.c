#include "server.h"

#include "words.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct server_link {
    TAILQ_ENTRY(server_link) link;
    struct server *server;
    struct bufferevent *stream;
    unsigned db;
    bool is_mute; /* it owes an answer: then it gives none behind that either */
};

static void look_at_clock(struct server *server) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    server->world.now = (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static void hang_up(struct server_link *link) {
    TAILQ_REMOVE(&link->server->links, link, link);
    bufferevent_free(link->stream);
    free(link);
}

/* ---- answers ---- */

static void answer(struct evbuffer *out, const struct reply *reply) {
    switch (reply->type) {
    case REPLY_STATUS:
        evbuffer_add_printf(out, "+%s\r\n", reply->text);
        break;
    case REPLY_ERROR:
        evbuffer_add_printf(out, "-%s\r\n", reply->text);
        break;
    case REPLY_INTEGER:
        evbuffer_add_printf(out, ":%" PRId64 "\r\n", reply->integer);
        break;
    case REPLY_NIL:
        evbuffer_add_printf(out, "$-1\r\n");
        break;
    case REPLY_STRING:
        evbuffer_add_printf(out, "$%zu\r\n", reply->length);
        evbuffer_add(out, reply->text, reply->length);
        evbuffer_add_printf(out, "\r\n");
        break;
    }
}

static bool is_about_locks(const struct words *words) {
    return word_is(&words->word[0], "SET") || word_is(&words->word[0], "EVALSHA") ||
           word_is(&words->word[0], "EVAL");
}

static struct reply run(struct server_link *link, const struct words *words) {
    struct server *server = link->server;
    if (server->error != NULL && is_about_locks(words)) {
        return (struct reply){
            .type = REPLY_ERROR, .text = server->error, .length = strlen(server->error)};
    }
    look_at_clock(server);
    server->master.commands++;
    server->master.db = link->db;
    struct reply reply = master_run(&server->master, words);
    link->db = server->master.db;
    return reply;
}

static void on_bytes(struct bufferevent *stream, void *arg) {
    struct server_link *link = arg;
    struct evbuffer *in = bufferevent_get_input(stream);
    struct words words;
    size_t length = 1;
    while (length > 0 && evbuffer_get_length(in) > 0) {
        length = words_read(&words, (const char *)evbuffer_pullup(in, -1), evbuffer_get_length(in));
        if (length > 0) {
            struct reply reply = run(link, &words);
            link->is_mute |= link->server->is_silent;
            if (!link->is_mute) {
                answer(bufferevent_get_output(stream), &reply);
            }
            evbuffer_drain(in, length);
        }
    }
}

static void on_end(struct bufferevent *stream, short events, void *arg) {
    (void)stream;
    (void)events;
    hang_up(arg);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *arg) {
    struct server *server = arg;
    struct server_link *link = calloc(1, sizeof(*link));
    (void)listener;
    (void)address;
    (void)length;
    if (link == NULL) {
        abort();
    }
    link->server = server;
    link->stream = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(link->stream, on_bytes, NULL, on_end, link);
    bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    TAILQ_INSERT_TAIL(&server->links, link, link);
}

/* ---- life ---- */

void server_start(struct server *server, struct event_base *base, const char *folder,
                  unsigned index) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *server = (struct server){.base = base};
    TAILQ_INIT(&server->links);
    look_at_clock(server);
    master_init(&server->master, &server->world, index);
    snprintf(server->path, sizeof(server->path), "%s/%u", folder, index);
    snprintf(server->uri, sizeof(server->uri), "unix://%s", server->path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->path);
    server->listener = evconnlistener_new_bind(base, on_accept, server,
                                               LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 128,
                                               (struct sockaddr *)&address, sizeof(address));
    if (server->listener == NULL) {
        perror(server->path);
        exit(2);
    }
}

void server_drop(struct server *server) {
    while (!TAILQ_EMPTY(&server->links)) {
        hang_up(TAILQ_FIRST(&server->links));
    }
}

void server_stop(struct server *server) {
    server_drop(server);
    evconnlistener_free(server->listener);
    unlink(server->path);
    master_finish(&server->master);
}

static void run_words(struct server *server, unsigned count, const char *const *text) {
    struct words words = {.count = count};
    for (unsigned i = 0; i < count; i++) {
        words.word[i] = (struct word){text[i], strlen(text[i])};
    }
    look_at_clock(server);
    server->master.commands++;
    server->master.db = 0;
    master_run(&server->master, &words);
}

void server_set(struct server *server, const char *key, const char *value) {
    run_words(server, 5, (const char *[]){"SET", key, value, "PX", "100000"});
}

void server_delete(struct server *server, const char *key) {
    run_words(server, 2, (const char *[]){"DEL", key});
}
