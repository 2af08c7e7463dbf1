/*
 * The happy path: inspections_ask sends one script call to each node; each answer goes into the
 * survey (core/survey.h). The next turn reports to the application when all nodes have answered,
 * when the missing answers cannot change the check of a fence, or when all nodes without an answer
 * are late.
 *
 * Calls wait until a quorum is connected for the first time, as the first try of a request does.
 *
 * Failures: as with a grant, an answer counts only if its node is fully trusted and no duplicate.
 * A counter that is not a number voids the answer, since its value cannot be known. Replies may
 * come after the report: the inspection lives until the last one.
 */
#include "lock/inspect.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "core/options.h"
#include "core/survey.h"
#include "io/clock.h"
#include "io/loop.h"
#include "node/eval.h"
#include "node/node.h"
#include "wire/command.h"
#include "wire/fence.h"
#include "wire/reply.h"
#include "wire/script.h"

#include <string.h>

#define DETAIL_MAX 128

/*
 * The most inspections that wait for the nodes to connect: each has room for what all nodes may
 * answer. More of them are asked at once, and most likely answered by no quorum.
 */
#define WAITING_MAX 16

/* What the nodes have answered, until it is reported: most of an inspection's memory. */
struct findings {
    struct survey survey;
    char details[REDLOCK_MAX_NODES][DETAIL_MAX];
    struct survey_entries entries[]; /* by node; none for the check of a fence */
};

struct inspection {
    struct conn_request request;
    struct inspections *inspections;
    struct eval eval;
    TAILQ_ENTRY(inspection) link;
    struct inspection_listener listener;
    struct timer timer;
    struct key *key;
    uint64_t fence;
    unsigned references;       /* number of replies to come, plus 1 while in the list */
    uint32_t waiting;          /* mask: nodes whose answer is awaited */
    bool is_asked;             /* the calls were sent */
    bool is_over;              /* all awaited nodes are late, or the time to connect is over */
    struct findings *findings; /* NULL: they were reported */
};

static void free_inspection(struct inspection *inspection, const redlock_allocator *allocator) {
    if (inspection->key != NULL) {
        key_drop(inspection->key);
    }
    if (inspection->findings != NULL) {
        memory_free(allocator, inspection->findings);
    }
    memory_free(allocator, inspection);
}

static void drop_inspection(struct inspection *inspection) {
    struct inspections *inspections = inspection->inspections;
    struct context *context = inspections->context;
    if (--inspection->references > 0) {
        return;
    }
    timer_finish(&inspection->timer);
    free_inspection(inspection, &context->allocator);
    inspections->out--;
}

static void record_failure(struct inspection *inspection, const struct node *node,
                           const char *text) {
    struct text detail;
    text_init(&detail, inspection->findings->details[node->index], DETAIL_MAX);
    text_append_foreign(&detail, text, strlen(text));
}

/* ---- answers ---- */

static void take_view(struct inspection *inspection, struct node *node,
                      const struct reply_view *view) {
    struct survey_answer *answer = &inspection->findings->survey.answers[node->index];
    static const enum survey_state states[] = {
        [REPLY_VIEW_FREE] = SURVEY_FREE,
        [REPLY_VIEW_HELD] = SURVEY_HELD,
        [REPLY_VIEW_NO_EXPIRY] = SURVEY_NO_LOCK,
        [REPLY_VIEW_NO_STRING] = SURVEY_NO_LOCK,
    };
    if (view->kind == REPLY_VIEW_NO_COUNTER) {
        record_failure(inspection, node, COUNTER_RUINED);
        return; /* Fence: without its counter the node counts as silent */
    }
    answer->state = states[view->kind];
    answer->ttl_ms = view->ttl_ms;
    answer->fence = view->fence;
    answer->readers = view->readers;
    answer->queue_length = view->queue_length;
    survey_record_value(answer, view->value, view->length);
    for (uint32_t i = 0; i < view->named && inspection->findings->survey.entries != NULL; i++) {
        const struct reply_waiter *waiter = &view->waiters[i];
        survey_record_waiter(&inspection->findings->survey.entries[node->index], waiter->ticket,
                             waiter->value, waiter->length);
    }
    if (view->kind == REPLY_VIEW_NO_EXPIRY) {
        record_failure(inspection, node, "the key never expires");
    } else if (view->kind == REPLY_VIEW_NO_STRING) {
        record_failure(inspection, node, "the key is not a string");
    }
}

static void take_node_answer(struct inspection *inspection, struct node *node,
                             const struct reply *reply) {
    const struct trust_view verdict = guard_judge(&node->guard);
    struct reply_view view;
    if (reply == NULL) {
        record_failure(inspection, node, "no answer before the connection ended");
    } else if (reply->type == REPLY_ERROR) {
        node_complain(node, reply);
        record_failure(inspection, node, reply->text);
    } else if (!reply_to_inspect(reply, &view)) {
        record_failure(inspection, node, "an answer that makes no sense");
    } else if (verdict.fault != TRUST_NO_FAULT) { /* Trust: as for a grant */
        record_failure(inspection, node, guard_why(&node->guard, &verdict));
    } else {
        take_view(inspection, node, &view);
    }
}

/* Sends the call to a node, with the text if it lacks the script. Returns false when not sent. */
static bool send_inspection(struct inspection *inspection, struct node *node) {
    struct context *context = inspection->inspections->context;
    struct bytes *command = &context->scratch;
    struct script_call call;
    bool names_waiters = inspection->listener.on_view != NULL;
    const struct lock_arguments lock = {
        .key = inspection->key, .waiters_named = names_waiters ? REDLOCK_MAX_QUEUE_OWNERS : 0};
    script_call_init(&call, &context->allocator);
    script_call_add(&call, SCRIPT_INSPECT, &lock);
    bytes_clear(command);
    command_script(command, SCRIPT_INSPECT,
                   eval_takes_text(&inspection->eval, &node->uplink, node->index), &call);
    script_call_finish(&call);
    /* A text that was counted as sent is due again, or later calls would rely on it. */
    if (command->failed || !node_send(node, &inspection->request, command->data, command->length)) {
        eval_not_sent(&inspection->eval, &node->uplink, node->index);
        return false;
    }
    return true;
}

static void on_inspect_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct inspection *inspection = (struct inspection *)request;
    struct node *node = node_of(owner);
    /* NOSCRIPT: the call goes once more, with the script's text, and keeps its reference. */
    if (eval_is_asked_again(&inspection->eval, &node->uplink, node->index, reply) &&
        send_inspection(inspection, node)) {
        context_wake(inspection->inspections->context);
        return;
    }
    if (inspection->waiting & node_bit(node)) { /* not reported yet */
        inspection->waiting &= ~node_bit(node);
        take_node_answer(inspection, node, reply);
        context_wake(inspection->inspections->context);
    }
    drop_inspection(inspection);
}

/* ---- asking ---- */

/* Waits for nodes that are not late yet: each has its own timeout, as in a round. */
static void await_nodes(struct inspection *inspection, uint64_t now) {
    const struct round_silence silence =
        members_silence(inspection->inspections->members, inspection->waiting,
                        inspection->request.sent_at, ANSWER_MARGIN, now);
    inspection->is_over = (inspection->waiting & ~silence.late) == 0;
    if (!inspection->is_over) {
        timer_set(&inspection->timer, silence.next);
    }
}

static void on_inspect_timer(void *arg) {
    struct inspection *inspection = arg;
    if (inspection->is_asked) {
        await_nodes(inspection, clock_now());
    } else {
        inspection->is_over = true;
    }
    context_wake(inspection->inspections->context);
}

static void ask_node(struct inspection *inspection, struct node *node) {
    const struct trust_view verdict = guard_look(&node->guard);
    if (verdict.fault == TRUST_DUPLICATE) { /* Trust: one server answers once */
        record_failure(inspection, node, guard_why(&node->guard, &verdict));
        return;
    }
    if (send_inspection(inspection, node)) {
        inspection->references++;
        inspection->waiting |= node_bit(node);
    } else {
        record_failure(inspection, node, uplink_why_unreachable(&node->uplink));
    }
}

static void ask_nodes(struct inspection *inspection) {
    const struct members *members = inspection->inspections->members;
    const struct quorum_lists *lists = &inspection->findings->survey.lists;
    /* The lists of when the inspection began, less the nodes that left since. */
    uint32_t rest = members_all(members) & (lists->now | lists->next);
    uint64_t now = clock_now();
    struct node *node;
    inspection->is_asked = true;
    inspection->request.sent_at = now;
    while ((node = members_take(members, &rest)) != NULL) {
        node_beat(node, now); /* Trust: an answer needs a recent beat before it */
        ask_node(inspection, node);
    }
    await_nodes(inspection, now);
    context_wake(inspection->inspections->context);
}

/* Returns empty findings, with room for queue entries if the callback is `on_view`. */
static struct findings *create_findings(const struct inspections *inspections,
                                        const struct inspection_listener *listener) {
    bool names_waiters = listener->on_view != NULL;
    struct quorum_lists lists = members_lists(inspections->members);
    size_t nodes = names_waiters ? round_indexes(lists) : 0;
    struct findings *findings = memory_zalloc(
        &inspections->context->allocator, sizeof(*findings) + nodes * sizeof(findings->entries[0]));
    if (findings != NULL) {
        findings->survey.lists = lists;
        findings->survey.entries = names_waiters ? findings->entries : NULL;
    }
    return findings;
}

static struct inspection *create_inspection(struct inspections *inspections, const char *key,
                                            size_t key_length,
                                            const struct inspection_listener *listener) {
    struct context *context = inspections->context;
    struct inspection *inspection = memory_zalloc(&context->allocator, sizeof(*inspection));
    if (inspection == NULL) {
        return NULL;
    }
    inspection->listener = *listener;
    inspection->key = key_create(&context->keys, key, key_length);
    inspection->findings = create_findings(inspections, listener);
    timer_init(&inspection->timer, context->loop, on_inspect_timer, inspection);
    if (inspection->key == NULL || inspection->findings == NULL) {
        free_inspection(inspection, &context->allocator);
        return NULL;
    }
    inspection->request.on_reply = on_inspect_reply;
    inspection->request.length = 2 * key_length; /* an estimate, shared by all nodes */
    inspection->inspections = inspections;
    inspection->eval = (struct eval){.script = SCRIPT_INSPECT};
    inspection->references = 1;
    TAILQ_INSERT_TAIL(&inspections->all, inspection, link);
    inspections->out++;
    return inspection;
}

redlock_status inspections_ask(struct inspections *inspections, const char *key, size_t key_length,
                               uint64_t fence, const struct inspection_listener *listener) {
    struct inspection *inspection = create_inspection(inspections, key, key_length, listener);
    if (inspection == NULL) {
        return REDLOCK_ENOMEM;
    }
    uint64_t now = clock_now();
    uint64_t start_by = nanos_add(now, options_stall(&inspections->context->options));
    inspection->fence = fence;
    members_use(inspections->members, now);
    /* Like the first try of a request, an inspection waits for a quorum to connect. */
    if (inspections->members->are_known || inspections->out > WAITING_MAX) {
        ask_nodes(inspection);
    } else {
        timer_set(&inspection->timer, start_by);
    }
    return REDLOCK_OK;
}

/* ---- reports ---- */

static bool is_decided(const struct inspection *inspection) {
    bool is_closing = inspection->inspections->context->is_closing;
    /* A fence is stale, or not, for certain: later answers cannot change that. */
    bool is_known =
        inspection->listener.on_fence != NULL &&
        survey_check_fence(&inspection->findings->survey, inspection->fence) != REDLOCK_ENOQUORUM;
    bool is_complete = inspection->is_asked && inspection->waiting == 0;
    return is_closing || inspection->is_over || is_complete || is_known;
}

static const char *detail_of(const struct inspection *inspection, const struct node *node) {
    uint32_t bit = node_bit(node);
    const struct quorum_lists *lists = &inspection->findings->survey.lists;
    const char *detail = inspection->findings->details[node->index];
    if (!((lists->now | lists->next) & bit)) { /* the lists of the time of the question */
        return "it was not asked: it joined later";
    }
    if (!inspection->is_asked) {
        return "it was not asked: the client was closed before";
    }
    if (inspection->waiting & bit) {
        return "no answer in time";
    }
    bool is_silent = inspection->findings->survey.answers[node->index].state == SURVEY_SILENT;
    return is_silent && detail[0] == '\0' ? "refused without a reason" : detail;
}

static redlock_node_view view_of(const struct inspection *inspection, const struct node *node) {
    const struct survey_answer *answer = &inspection->findings->survey.answers[node->index];
    return (redlock_node_view){
        .node = node_name(node),
        .answered = answer->state != SURVEY_SILENT,
        .held = answer->state == SURVEY_HELD,
        .owner = answer->owner,
        .ttl_ms = answer->ttl_ms,
        .fence = fence_first(answer->fence),
        .detail = detail_of(inspection, node),
        .readers = answer->readers,
        .queue_length = answer->queue_length,
    };
}

/* Returns `status`, or REDLOCK_ECLOSED while the client is closing. */
static redlock_status unless_closing(const struct inspection *inspection, redlock_status status) {
    return inspection->inspections->context->is_closing ? REDLOCK_ECLOSED : status;
}

static void report_view(const struct inspection *inspection) {
    struct survey_verdict verdict = survey_decide(&inspection->findings->survey);
    struct survey_queue queue;
    const char *owners[REDLOCK_MAX_QUEUE_OWNERS];
    redlock_node_view views[REDLOCK_MAX_NODES];
    struct node *nodes[REDLOCK_MAX_NODES];
    uint32_t count = members_in_order(inspection->inspections->members, nodes);
    for (uint32_t i = 0; i < count; i++) {
        views[i] = view_of(inspection, nodes[i]);
    }
    survey_waiters(&inspection->findings->survey, &queue);
    for (uint32_t i = 0; i < queue.owner_count; i++) {
        owners[i] = queue.owners[i];
    }
    redlock_view view = {
        .held = verdict.is_held,
        .owner = verdict.is_held ? inspection->findings->survey.answers[verdict.node].owner : "",
        .ttl_ms = verdict.ttl_ms,
        .fence = verdict.fence,
        .nodes = views,
        .node_count = count,
        .readers = verdict.readers,
        .queue_length = queue.length,
        .queue_owners = owners,
        .queue_owner_count = queue.owner_count,
    };
    redlock_status status = verdict.is_certain ? REDLOCK_OK : REDLOCK_ENOQUORUM;
    inspection->listener.on_view(unless_closing(inspection, status), &view,
                                 inspection->listener.arg);
}

static void report_fence(const struct inspection *inspection) {
    redlock_status status = survey_check_fence(&inspection->findings->survey, inspection->fence);
    inspection->listener.on_fence(unless_closing(inspection, status), inspection->listener.arg);
}

static void report_outcome(struct inspection *inspection) {
    timer_clear(&inspection->timer);
    if (inspection->listener.on_view != NULL) {
        report_view(inspection);
    } else {
        report_fence(inspection);
    }
}

void inspections_init(struct inspections *inspections, struct context *context,
                      struct members *members) {
    inspections->context = context;
    inspections->members = members;
    inspections->out = 0;
    TAILQ_INIT(&inspections->all);
}

/*
 * Asks the nodes that are connected by now, and reports what is decided. Stops at the present last
 * one: inspections that callbacks begin wait for the next turn.
 */
void inspections_turn(struct inspections *inspections) {
    struct inspection *last = TAILQ_LAST(&inspections->all, inspection_list);
    struct inspection *inspection = TAILQ_FIRST(&inspections->all);
    bool is_last = inspection == NULL;
    while (!is_last) {
        struct inspection *next = TAILQ_NEXT(inspection, link);
        is_last = inspection == last;
        /* Without a quorum in time, the nodes that are connected by then are asked. */
        if (!inspection->is_asked && (inspection->is_over || inspections->members->are_known)) {
            inspection->is_over = false;
            ask_nodes(inspection);
        }
        if (is_decided(inspection)) {
            TAILQ_REMOVE(&inspections->all, inspection, link);
            report_outcome(inspection);
            inspection->waiting = 0; /* later answers are ignored */
            memory_free(&inspections->context->allocator, inspection->findings);
            inspection->findings = NULL; /* a silent node may keep the rest for long */
            drop_inspection(inspection);
        }
        inspection = next;
    }
}
