#include "demo_ask.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <string.h>

#define ANSWER_LIMIT_MS 60000

/* A question in progress. */
struct asking {
    struct question *question;
    bool is_over;
};

static void on_reply(struct evhttp_request *reply, void *arg) {
    struct asking *asking = arg;
    struct question *question = asking->question;

    asking->is_over = true;
    if (reply == NULL) {
        return;
    }
    question->code = evhttp_request_get_response_code(reply);
    evbuffer_copyout(evhttp_request_get_input_buffer(reply), question->text,
                     sizeof(question->text) - 1);
    question->text[strcspn(question->text, "\r\n")] = '\0';
}

static bool is_over(struct stage *stage) {
    const struct asking *asking = stage->subject;

    return asking->is_over;
}

static bool fill_in(struct evhttp_request *request, const struct question *question) {
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct evbuffer *body = evhttp_request_get_output_buffer(request);

    return (question->fence == NULL || evhttp_add_header(headers, "Fence", question->fence) == 0) &&
           (question->value == NULL ||
            evbuffer_add(body, question->value, strlen(question->value)) == 0);
}

static void ask_on(struct stage *stage, struct evhttp_connection *connection,
                   struct asking *asking) {
    struct evhttp_request *request = evhttp_request_new(on_reply, asking);

    if (request == NULL) {
        return;
    }
    if (!fill_in(request, asking->question)) {
        evhttp_request_free(request);
        return;
    }
    if (evhttp_make_request(connection, request, asking->question->verb,
                            asking->question->object) == 0) {
        stage->subject = asking;
        stage_run_until(stage, is_over, ANSWER_LIMIT_MS);
    }
}

int ask(struct stage *stage, struct question *question) {
    struct asking asking = {.question = question};
    struct evhttp_connection *connection =
        evhttp_connection_base_new(stage->base, NULL, "127.0.0.1", question->port);

    question->code = 0;
    memset(question->text, 0, sizeof(question->text));
    if (connection != NULL) {
        ask_on(stage, connection, &asking);
        /* Also frees the request of a question still in progress. */
        evhttp_connection_free(connection);
    }
    return question->code;
}
