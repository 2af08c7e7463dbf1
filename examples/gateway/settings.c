#include "settings.h"

#include "duration.h"
#include "locks.h"
#include "stream.h"
#include "tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum for limits on counts: an inspection looks at all locks of the gateway. */
#define COUNT_MAX 100000
/* Connections in addition to those of waiting requests and pages. */
#define SPARE_CONNECTIONS 32
/* A time that the command line does not set. */
#define UNSET UINT64_MAX

static const char help[] =
    "usage: redlock-gateway [OPTIONS]\n"
    "\n"
    "Serves distributed locks over HTTP, to programs in any language.\n"
    "\n"
    "  -n, --nodes URI,URI,...  masters; or REDLOCK_NODES\n"
    "      --listen ADDR:PORT   where to listen (127.0.0.1:8520; [::1]:8520; port 0: a free one)\n"
    "      --token-file FILE    ask for a bearer token, one of those in the file\n"
    "      --allow-anyone       listen beyond this machine without a token\n"
    "      --host NAME          further name of this server in the header Host; without a token\n"
    "      --owner NAME         name of this gateway in the values of its keys\n"
    "      --max-ttl 30s        longest TTL; the masters' clients must agree\n"
    "      --node-timeout TIME  time that a master has to answer; follows the network\n"
    "      --max-wait 10m       longest wait that a request may ask for\n"
    "      --idle 30s           time that a client has for a request, or an answer\n"
    "      --drain TIME         time after a signal for renewals and releases; --max-ttl\n"
    "      --max-locks 10000    locks held at once\n"
    "      --max-waiters 500    requests for locks under way at once\n"
    "      --max-connections 1024\n"
    "      --version\n"
    "\n"
    "TLS to masters: REDLOCK_TLS_CA_FILE, REDLOCK_TLS_CERT_FILE, REDLOCK_TLS_KEY_FILE.\n"
    "Times: 500ms, 10s, 2m, 1h. Exit codes: 0 ended by a signal;\n"
    "  64 usage, 69 not all releases confirmed, 71 the system refused a service.\n";

enum {
    OPTION_LISTEN = 768,
    OPTION_TOKEN_FILE,
    OPTION_ALLOW_ANYONE,
    OPTION_HOST,
    OPTION_OWNER,
    OPTION_MAX_WAIT,
    OPTION_IDLE,
    OPTION_DRAIN,
    OPTION_MAX_LOCKS,
    OPTION_MAX_WAITERS,
    OPTION_MAX_CONNECTIONS,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option options[] = {
    NODES_OPTIONS,
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"token-file", required_argument, NULL, OPTION_TOKEN_FILE},
    {"allow-anyone", no_argument, NULL, OPTION_ALLOW_ANYONE},
    {"host", required_argument, NULL, OPTION_HOST},
    {"owner", required_argument, NULL, OPTION_OWNER},
    {"max-wait", required_argument, NULL, OPTION_MAX_WAIT},
    {"idle", required_argument, NULL, OPTION_IDLE},
    {"drain", required_argument, NULL, OPTION_DRAIN},
    {"max-locks", required_argument, NULL, OPTION_MAX_LOCKS},
    {"max-waiters", required_argument, NULL, OPTION_MAX_WAITERS},
    {"max-connections", required_argument, NULL, OPTION_MAX_CONNECTIONS},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static bool read_count(const char *text, unsigned long most, unsigned long *count) {
    char *end;

    errno = 0;
    *count = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *count <= most;
}

static size_t count_of(const char *option, const char *text) {
    unsigned long count;

    if (!read_count(text, COUNT_MAX, &count) || count == 0) {
        tool_usage("%s %s: write a number from 1 to %d", option, text, COUNT_MAX);
    }
    return count;
}

static bool is_loopback(const char *address) {
    struct in_addr four;
    struct in6_addr six;

    if (inet_pton(AF_INET, address, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    return inet_pton(AF_INET6, address, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_address(const char *text) {
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Reads "127.0.0.1:8520" or "[::1]:8520". */
static void read_listen(struct settings *settings, const char *text) {
    const char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    unsigned long port;

    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof(settings->address) ||
        !read_count(colon + 1, UINT16_MAX, &port)) {
        tool_usage("--listen %s: write ADDRESS:PORT, such as 127.0.0.1:8520", text);
    }
    memcpy(settings->address, text, length);
    settings->address[length] = '\0';
    if (!is_address(settings->address)) {
        tool_usage("--listen: \"%s\" is no numeric address", settings->address);
    }
    settings->port = (uint16_t)port;
}

/* Returns whether the text is a Host header without a port: a name, or [::1]. */
static bool is_name(const char *text) {
    size_t length = strlen(text);

    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        return strspn(text + 1, "0123456789abcdefABCDEF:.") == length - 2;
    }
    return length > 0 && strcspn(text, ":/@[] \t") == length;
}

static void add_host(struct settings *settings, const char *name) {
    if (settings->host_count == SETTINGS_HOSTS_MAX) {
        tool_usage("--host: more than %d names", SETTINGS_HOSTS_MAX);
    }
    if (!is_name(name)) {
        tool_usage("--host \"%s\": write a name without a port, such as locks.example", name);
    }
    settings->hosts[settings->host_count++] = name;
}

static void take_bound(struct settings *settings, int option) {
    switch (option) {
    case OPTION_MAX_WAIT:
        settings->max_wait_ms = duration_of_option("--max-wait", optarg);
        break;
    case OPTION_IDLE:
        settings->idle_ms = duration_of_option("--idle", optarg);
        break;
    case OPTION_DRAIN:
        settings->drain_ms = duration_of_option("--drain", optarg);
        break;
    case OPTION_MAX_LOCKS:
        settings->max_locks = count_of("--max-locks", optarg);
        break;
    case OPTION_MAX_WAITERS:
        settings->max_waiters = count_of("--max-waiters", optarg);
        break;
    case OPTION_MAX_CONNECTIONS:
        settings->max_connections = count_of("--max-connections", optarg);
        break;
    default:
        tool_usage("the command line makes no sense");
    }
}

static void take(struct settings *settings, int option) {
    switch (option) {
    case OPTION_LISTEN:
        read_listen(settings, optarg);
        break;
    case OPTION_TOKEN_FILE:
        tokens_read(&settings->tokens, optarg);
        break;
    case OPTION_ALLOW_ANYONE:
        settings->allows_anyone = true;
        break;
    case OPTION_HOST:
        add_host(settings, optarg);
        break;
    case OPTION_OWNER:
        settings->owner = optarg;
        break;
    case OPTION_HELP:
        fputs(help, stdout);
        exit(tool_flush(TOOL_OK));
    case OPTION_VERSION:
        printf("redlock-gateway %s\n", redlock_version());
        exit(tool_flush(TOOL_OK));
    default:
        take_bound(settings, option);
    }
}

static void check(const struct settings *settings) {
    if (!settings->is_loopback && settings->tokens.count == 0 && !settings->allows_anyone) {
        tool_usage("--listen %s: others than this machine reach that address; use --token-file, or "
                   "say --allow-anyone",
                   settings->address);
    }
    if (settings->nodes.max_ttl_ms < LOCKS_TTL_MIN_MS) {
        tool_usage("--max-ttl: %dms at least", LOCKS_TTL_MIN_MS);
    }
    if (settings->idle_ms < 100) {
        tool_usage("--idle: 100ms at least");
    }
    if (settings->max_connections < settings->max_waiters + STREAMS_MAX + SPARE_CONNECTIONS) {
        tool_usage("--max-connections: at least %d more than --max-waiters",
                   STREAMS_MAX + SPARE_CONNECTIONS);
    }
}

void settings_read(struct settings *settings, int argc, char **argv) {
    *settings = (struct settings){
        .address = "127.0.0.1",
        .port = 8520,
        .max_wait_ms = 600000,
        .idle_ms = 30000,
        .drain_ms = UNSET,
        .max_locks = 10000,
        .max_waiters = 500,
        .max_connections = 1024,
    };
    nodes_init(&settings->nodes);
    for (int option; (option = getopt_long(argc, argv, "n:", options, NULL)) != -1;) {
        if (!nodes_take(&settings->nodes, option)) {
            take(settings, option);
        }
    }
    if (optind < argc) {
        tool_usage("\"%s\" is no option", argv[optind]);
    }
    nodes_default(&settings->nodes);
    if (settings->drain_ms == UNSET) {
        settings->drain_ms = settings->nodes.max_ttl_ms;
    }
    settings->is_loopback = is_loopback(settings->address);
    check(settings);
}
