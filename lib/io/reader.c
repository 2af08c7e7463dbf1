/*
 * hiredis parses the stream and calls a function to create an object for each item; if the function
 * returns NULL, hiredis reports an error and the connection ends. Thus a server cannot send an item
 * on which hiredis would abort (a reply without a request), nest arrays until the stack overflows,
 * or fill the memory.
 */
#include "io/reader.h"

#include <string.h>

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/* hiredis passes its reader's privdata on to each task of a reply. */
static struct reader *reader_of(const redisReadTask *task) {
    return task->privdata;
}

static void *refuse_reply(const redisReadTask *task, const char *why) {
    reader_of(task)->refusal = why;
    return NULL;
}

/* Returns whether the next reply belongs to the subscription: SUBSCRIBE is the last command. */
static bool awaits_message(const struct reader *reader) {
    return reader->channel != NULL && reader->awaited == (reader->is_confirmed ? 0 : 1);
}

static redisReply *accept_reply(const redisReadTask *task, int type) {
    struct reader *reader = reader_of(task);
    bool is_error = type == REDIS_REPLY_ERROR;
    if (awaits_message(reader) && task->parent == NULL && !is_error) {
        return refuse_reply(task, "sent a message that nobody asked for");
    }
    if (task->parent != NULL || (reader->awaited == 0 && !is_error)) {
        return refuse_reply(task, "sent an answer that nobody asked for");
    }
    reader->reply = (redisReply){.type = type};
    return &reader->reply;
}

/*
 * Returns the length of the error text without the arguments that Redis quotes for an unknown
 * command: a password or a token may be among them, and the text may be logged.
 */
static size_t without_arguments(const char *text, size_t length) {
    static const char phrase[] = ", with args beginning with";
    const char *found = memmem(text, length, phrase, sizeof(phrase) - 1);
    return found != NULL ? (size_t)(found - text) : length;
}

static void *take_text(struct reader *reader, const char *text, size_t length) {
    memcpy(reader->text, text, length);
    reader->text[length] = '\0';
    reader->reply.str = reader->text;
    reader->reply.len = length;
    return &reader->reply;
}

/* ---- a confirmation, or a message: [word, channel, number or text] ---- */

enum { MESSAGE_WORD, MESSAGE_CHANNEL, MESSAGE_CONTENT, MESSAGE_LENGTH };

static bool is_text(const char *expected, const char *text, size_t length) {
    return strlen(expected) == length && memcmp(expected, text, length) == 0;
}

/* The channel of client tracking (redis.io/docs/reference/client-side-caching, "Two
 * connections"). */
#define CHANGES "__redis__:invalidate"

static void *refuse_message(const redisReadTask *task) {
    return refuse_reply(task, "sent a message that nobody asked for");
}

/* Begins a message. The object must never have the type of an array: hiredis would look into it. */
static void *create_message(const redisReadTask *task, array_size elements) {
    struct reader *reader = reader_of(task);
    if (task->type != REDIS_REPLY_ARRAY || elements != MESSAGE_LENGTH) {
        return refuse_message(task);
    }
    reader->is_change = false;
    reader->reply = (redisReply){
        .type = reader->is_confirmed ? REDIS_REPLY_STRING : REDIS_REPLY_INTEGER,
    };
    return &reader->reply;
}

/* Returns whether an item is in an array inside the message: the key of a change. */
static bool is_inside(const redisReadTask *task) {
    return task->parent->parent != NULL;
}

/* Returns whether an item is the last one of a message of client tracking. */
static bool is_change_content(const redisReadTask *task) {
    return !is_inside(task) && task->idx == MESSAGE_CONTENT && reader_of(task)->is_change;
}

/* Begins the array of the changed keys; servers name one key in each message. */
static void *add_change(const redisReadTask *task, array_size elements) {
    return is_change_content(task) && task->type == REDIS_REPLY_ARRAY && elements == 1
               ? &reader_of(task)->reply
               : refuse_message(task);
}

/* Adds the content of a message that says that any key may have changed. */
static void *add_nothing(const redisReadTask *task) {
    if (!is_change_content(task)) {
        return refuse_message(task);
    }
    reader_of(task)->reply.type = REDIS_REPLY_NIL;
    return &reader_of(task)->reply;
}

static bool is_channel(struct reader *reader, const char *text, size_t length) {
    reader->is_change = reader->is_confirmed && is_text(CHANGES, text, length);
    if (reader->is_change) {
        reader->reply.type = REDIS_REPLY_STATUS;
    }
    return reader->is_change || is_text(reader->channel, text, length);
}

/* Adds a text of a message. Kept out of create_string, which runs for each reply. */
static __attribute__((noinline)) void *add_text_element(const redisReadTask *task, const char *text,
                                                        size_t length) {
    struct reader *reader = reader_of(task);
    const char *word = reader->is_confirmed ? "message" : "subscribe";
    bool is_key = is_inside(task);
    bool is_content = is_key || (task->idx == MESSAGE_CONTENT && reader->is_confirmed);
    if (task->type != REDIS_REPLY_STRING || is_key != (is_content && reader->is_change) ||
        (!is_key && task->idx == MESSAGE_WORD && !is_text(word, text, length)) ||
        (!is_key && task->idx == MESSAGE_CHANNEL && !is_channel(reader, text, length)) ||
        (task->idx == MESSAGE_CONTENT && !is_content)) {
        return refuse_message(task);
    }
    if (is_content && length > READER_TEXT_MAX) {
        return refuse_reply(task, "sent a message that is too long");
    }
    return is_content ? take_text(reader, text, length) : &reader->reply;
}

/* Adds the number of subscriptions, the content of the confirmation. */
static void *add_number_element(const redisReadTask *task, long long value) {
    struct reader *reader = reader_of(task);
    if (task->idx != MESSAGE_CONTENT || reader->is_confirmed) {
        return refuse_message(task);
    }
    reader->is_confirmed = true;
    reader->reply.integer = value;
    return &reader->reply;
}

/* ---- functions that hiredis calls ---- */

static void *create_string(const redisReadTask *task, char *text, size_t length) {
    if (task->parent != NULL) {
        return add_text_element(task, text, length);
    }
    if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS &&
        task->type != REDIS_REPLY_ERROR) {
        return refuse_reply(task, "sent an answer of a type that was not asked for");
    }
    if (length > READER_TEXT_MAX) {
        return refuse_reply(task, "sent an answer that is too long");
    }
    if (accept_reply(task, task->type) == NULL) {
        return NULL;
    }
    if (task->type == REDIS_REPLY_ERROR) {
        length = without_arguments(text, length);
    }
    return take_text(reader_of(task), text, length);
}

static void *create_array(const redisReadTask *task, array_size elements) {
    if (task->parent != NULL) {
        return add_change(task, elements);
    }
    return awaits_message(reader_of(task))
               ? create_message(task, elements)
               : refuse_reply(task, "sent an array that nobody asked for");
}

static void *create_integer(const redisReadTask *task, long long value) {
    if (task->parent != NULL) {
        return add_number_element(task, value);
    }
    redisReply *reply = accept_reply(task, REDIS_REPLY_INTEGER);
    if (reply != NULL) {
        reply->integer = value;
    }
    return reply;
}

static void *create_nil(const redisReadTask *task) {
    return task->parent != NULL ? add_nothing(task) : accept_reply(task, REDIS_REPLY_NIL);
}

static void free_object(void *object) {
    (void)object; /* part of the reader */
}

#if HIREDIS_MAJOR >= 1
static void *create_double(const redisReadTask *task, double value, char *text, size_t length) {
    (void)value;
    (void)text;
    (void)length;
    return refuse_reply(task, "sent a number with a fraction, which nobody asked for");
}

static void *create_bool(const redisReadTask *task, int value) {
    (void)value;
    return refuse_reply(task, "sent a truth value that nobody asked for");
}
#endif

static redisReplyObjectFunctions functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_object,
#if HIREDIS_MAJOR >= 1
    .createDouble = create_double,
    .createBool = create_bool,
#endif
};

void reader_attach(struct reader *reader, redisAsyncContext *context) {
    reader->awaited = 0;
    reader->refusal = reader->channel = NULL;
    reader->is_confirmed = false;
    context->c.reader->fn = &functions;
    context->c.reader->privdata = reader;
}

void reader_subscribe(struct reader *reader, const char *channel) {
    reader->channel = channel;
}

static enum reply_type type_of(const redisReply *reply) {
    switch (reply->type) {
    case REDIS_REPLY_STATUS:
        return REPLY_STATUS;
    case REDIS_REPLY_ERROR:
        return REPLY_ERROR;
    case REDIS_REPLY_INTEGER:
        return REPLY_INTEGER;
    case REDIS_REPLY_NIL:
        return REPLY_NIL;
    default:
        return REPLY_STRING;
    }
}

struct reply reader_reply(const redisReply *given) {
    return (struct reply){
        .type = type_of(given),
        .text = given->str,
        .length = given->str != NULL ? (size_t)given->len : 0,
        .integer = given->integer,
    };
}
