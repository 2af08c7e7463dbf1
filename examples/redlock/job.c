#include "job.h"

#include "arguments.h"
#include "duration.h"
#include "tool.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TTL_MS 10000
#define TTL_LEAST_MS 500
#define WAIT_MS 30000
#define GRACE_MOST_MS 5000
#define MARGIN_LEAST_MS 100
#define MARGIN_MOST_MS 1000
#define LETTERS "-n:E:"
#define UNSET UINT64_MAX
#define TITLE_MOST 100

enum choice {
    OPTION_TTL = 256,
    OPTION_WAIT,
    OPTION_NO_WAIT,
    OPTION_MIN_HOLD,
    OPTION_FENCE,
    OPTION_SHARED,
    OPTION_WRITER,
    OPTION_PERMITS,
    OPTION_GRACE,
    OPTION_ON_LOST,
    OPTION_OWNER,
    OPTION_JSON,
    OPTION_KEY,
    OPTION_WATCH_KEY,
};

static const struct option options[] = {
    NODES_OPTIONS,
    {"ttl", required_argument, NULL, OPTION_TTL},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"no-wait", no_argument, NULL, OPTION_NO_WAIT},
    {"min-hold", required_argument, NULL, OPTION_MIN_HOLD},
    {"fence", no_argument, NULL, OPTION_FENCE},
    {"shared", no_argument, NULL, OPTION_SHARED},
    {"writer", no_argument, NULL, OPTION_WRITER},
    {"permits", required_argument, NULL, OPTION_PERMITS},
    {"grace", required_argument, NULL, OPTION_GRACE},
    {"on-lost", required_argument, NULL, OPTION_ON_LOST},
    {"exit-code", required_argument, NULL, 'E'},
    {"owner", required_argument, NULL, OPTION_OWNER},
    {"json", no_argument, NULL, OPTION_JSON},
    {"key", required_argument, NULL, OPTION_KEY},
    {"watch-key", no_argument, NULL, OPTION_WATCH_KEY},
    {NULL, 0, NULL, 0},
};

static uint32_t read_number(const char *option, const char *text, uint32_t least, uint32_t most) {
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < least || number > most) {
        tool_usage("%s %s: a number from %" PRIu32 " to %" PRIu32 " is needed", option, text, least,
                   most);
    }
    return (uint32_t)number;
}

static enum job_on_lost read_on_lost(const char *text) {
    static const char *const names[] = {
        [JOB_TERM] = "term", [JOB_KILL] = "kill", [JOB_WARN] = "warn"};

    for (int i = JOB_TERM; i <= JOB_WARN; i++) {
        if (strcmp(text, names[i]) == 0) {
            return (enum job_on_lost)i;
        }
    }
    tool_usage("--on-lost %s: it is term, kill or warn", text);
}

static void set_mode(struct job *job, redlock_mode mode) {
    if (job->mode != REDLOCK_EXCLUSIVE && job->mode != mode) {
        tool_usage("--shared and --writer exclude each other");
    }
    job->mode = mode;
}

/* Handles an option without a duration. */
static void take_option(struct job *job, int option) {
    switch (option) {
    case 'E':
        job->busy_code = (int)read_number("-E", optarg, 0, 255);
        break;
    case OPTION_NO_WAIT:
        job->has_no_wait = true;
        break;
    case OPTION_FENCE:
        job->is_fenced = true;
        break;
    case OPTION_WATCH_KEY:
        job->watches_key = true;
        break;
    case OPTION_SHARED:
        set_mode(job, REDLOCK_READER);
        break;
    case OPTION_WRITER:
        set_mode(job, REDLOCK_WRITER);
        break;
    case OPTION_PERMITS:
        job->permits = read_number("--permits", optarg, 1, REDLOCK_MAX_PERMITS);
        break;
    case OPTION_ON_LOST:
        job->on_lost = read_on_lost(optarg);
        break;
    case OPTION_OWNER:
        job->owner = optarg;
        break;
    case OPTION_JSON:
    default:
        job->is_json = true;
        break;
    }
}

/* Handles an option with a duration. Returns false for any other option. */
static bool take_duration(struct job *job, int option) {
    switch (option) {
    case OPTION_TTL:
        job->ttl_ms = duration_of_option("--ttl", optarg);
        return true;
    case OPTION_WAIT:
        job->wait_ms = duration_of_option("--wait", optarg);
        return true;
    case OPTION_MIN_HOLD:
        job->min_hold_ms = duration_of_option("--min-hold", optarg);
        return true;
    case OPTION_GRACE:
        job->grace_ms = duration_of_option("--grace", optarg);
        return true;
    default:
        return false;
    }
}

static uint64_t between(uint64_t value, uint64_t least, uint64_t most) {
    return value < least ? least : value > most ? most : value;
}

/*
 * Sets the margin and checks the grace period. A healthy lock is renewed after 1/3 of its TTL:
 * SIGTERM must come well after that.
 */
static void set_times(struct job *job) {
    if (job->ttl_ms < TTL_LEAST_MS) {
        tool_usage("--ttl: at least %d ms", TTL_LEAST_MS);
    }
    job->margin_ms = between(job->ttl_ms / 10, MARGIN_LEAST_MS, MARGIN_MOST_MS);
    if (job->grace_ms == UNSET) {
        job->grace_ms = between(job->ttl_ms / 4, 0, GRACE_MOST_MS);
    }
    if (job->margin_ms + job->grace_ms > job->ttl_ms / 2) {
        tool_usage("--grace: at most %" PRIu64 " ms with a TTL of %" PRIu64
                   " ms; a longer --ttl allows more",
                   job->ttl_ms / 2 - job->margin_ms, job->ttl_ms);
    }
}

static void set_wait(struct job *job) {
    if (job->has_no_wait && job->wait_ms != UNSET) {
        tool_usage("--wait and --no-wait exclude each other");
    }
    if (job->wait_ms == UNSET) {
        job->wait_ms = job->has_no_wait ? 0 : WAIT_MS;
    }
}

/* Returns the index of the argument "--"; `argc` if there is none. */
static int find_command(int argc, char **argv) {
    int position = 1;

    while (position < argc && strcmp(argv[position], "--") != 0) {
        position++;
    }
    return position;
}

/* Looks ahead for --json, so that errors before it are reported as events too. */
static bool asks_for_json(int end, char **argv) {
    bool is_json = false;

    opterr = 0;
    for (int option; (option = getopt_long(end, argv, LETTERS, options, NULL)) != -1;) {
        is_json = is_json || option == OPTION_JSON;
    }
    optind = 0; /* restart getopt_long() */
    opterr = !is_json;
    return is_json;
}

/* Reports an unknown option, or one that lacks its argument. */
static _Noreturn void refuse_option(char **argv) {
    if (optopt > 0 && optopt <= SCHAR_MAX) {
        tool_usage("run: the command line makes no sense at \"-%c\"", optopt);
    }
    tool_usage("run: the command line makes no sense at \"%s\"", argv[optind - 1]);
}

/* Returns a label that is unique to this process: "HOST:PID". */
static const char *own_label(void) {
    static char label[64];
    char host[41] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(label, sizeof(label), "%s:%ld", host, (long)getpid());
    return label;
}

static void set_defaults(struct job *job) {
    *job = (struct job){
        .ttl_ms = TTL_MS,
        .wait_ms = UNSET,
        .grace_ms = UNSET,
        .busy_code = TOOL_NOT_ACQUIRED,
        .owner = own_label(),
    };
    nodes_init(&job->nodes);
}

void job_read(struct job *job, int argc, char **argv) {
    int end = find_command(argc, argv);
    struct arguments arguments = {end, argv, LETTERS, options, 0};

    set_defaults(job);
    if (asks_for_json(end, argv)) {
        tool_speak_json();
    }
    if (end == argc) {
        tool_usage("run: write the command after \"--\", as in: redlock run KEY -- COMMAND");
    }
    argv[end] = NULL;
    for (int option; (option = arguments_next(&arguments)) != -1;) {
        if (option == OPTION_KEY) {
            arguments_keep(&arguments, optarg);
        } else if (option == '?') {
            refuse_option(argv);
        } else if (!nodes_take(&job->nodes, option) && !take_duration(job, option)) {
            take_option(job, option);
        }
    }
    job->keys = (const char *const *)argv + optind;
    job->key_count = (size_t)(end - optind);
    job->command = argv + end + 1;
    if (job->key_count == 0) {
        tool_usage("run: which key? As in: redlock run KEY -- COMMAND");
    }
    if (job->key_count > REDLOCK_MAX_KEYS) {
        tool_usage("run: more than %d keys", REDLOCK_MAX_KEYS);
    }
    if (job->command[0] == NULL) {
        tool_usage("run: which command? As in: redlock run KEY -- COMMAND");
    }
    set_times(job);
    set_wait(job);
    nodes_default(&job->nodes);
}

void job_request(const struct job *job, redlock_request *request) {
    *request = (redlock_request)REDLOCK_REQUEST_INIT;
    if (job->key_count == 1) {
        request->key = job->keys[0];
    } else {
        request->keys = job->keys;
        request->key_count = job->key_count;
    }
    request->ttl_ms = job->ttl_ms;
    request->wait_ms = job->wait_ms;
    request->min_hold_ms = job->min_hold_ms;
    request->min_validity_ms = job->margin_ms + job->grace_ms;
    request->permits = job->permits;
    request->fenced = job->is_fenced;
    request->mode = job->mode;
    request->watchdog = true;
    request->watch_key = job->watches_key;
}

const char *job_title(const struct job *job) {
    static char title[TITLE_MOST + sizeof(", ...")];
    size_t length = 0;

    /* A byte of a key takes up to 4 bytes of the title, as `redlock inspect` prints it. */
    for (const char *byte = job->keys[0]; *byte != '\0' && length + 4 <= TITLE_MOST; byte++) {
        if (isprint((unsigned char)*byte)) {
            title[length++] = *byte;
        } else {
            length += (size_t)sprintf(title + length, "\\x%02x", (unsigned char)*byte);
        }
    }
    strcpy(title + length, job->key_count > 1 ? ", ..." : "");
    return title;
}
