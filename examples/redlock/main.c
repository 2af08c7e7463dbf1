/* `redlock`: locks for shells and operators. */
#include "tool.h"

#include <fcntl.h>
#include <redlock.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: redlock COMMAND ...\n"
    "\n"
    "  run [OPTIONS] KEY... -- COMMAND [ARGS]   run a command under a lock\n"
    "      --ttl 10s           time after which a crashed holder's lock ends\n"
    "      --wait 30s          time to wait for the lock; --no-wait: none\n"
    "      --min-hold D        shortest time to keep the lock\n"
    "      --fence             give the command a fence, in REDLOCK_FENCE\n"
    "      --shared, --writer  share the lock with other readers; be their writer\n"
    "      --permits K         let K hold the lock at once\n"
    "      --grace D           time from SIGTERM to SIGKILL when the lock is lost\n"
    "      --on-lost term|kill|warn\n"
    "      --watch-key         notice at once when others delete or replace the key\n"
    "      -E CODE             exit code when others hold the lock, in place of 75\n"
    "      --owner NAME        name that others see; --json: print events as JSON\n"
    "      --key KEY           a key that begins with \"-\"\n"
    "  dev [N]            start N throwaway masters (5), until Ctrl-C\n"
    "  doctor             check whether the nodes are fit, and say what to fix\n"
    "  inspect KEY...     print who holds keys, and who waits for them\n"
    "  watch KEY          print each change of them; --interval 500ms\n"
    "  list [PREFIX]      list the locks, with their holders: a snapshot\n"
    "  nodes new          mark masters that are certainly new, so that they count\n"
    "                     as soon as they are up for --max-ttl 30s; --yes\n"
    "\n"
    "Nodes: -n URI,URI,... or REDLOCK_NODES. Times: 500ms, 10s, 2m, 1h.\n"
    "Exit codes of run: the command's (128 + signal); 64 usage, 69 no quorum,\n"
    "  75 held by others, 76 lost while running, 77 not permitted,\n"
    "  126, 127 cannot execute.\n";

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"run", run_main},     {"dev", dev_main},   {"doctor", doctor_main}, {"inspect", inspect_main},
    {"watch", watch_main}, {"list", list_main}, {"nodes", nodes_main},
};

/* Returns whether "--help" comes first, or after a command's name. */
static bool asks_for_help(int argc, char **argv) {
    return strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
           strcmp(argv[1], "help") == 0 || (argc > 2 && strcmp(argv[2], "--help") == 0);
}

/* Opens descriptors 0, 1 and 2 if they are closed, so that sockets do not get these numbers. */
static void open_standard_streams(void) {
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

int main(int argc, char **argv) {
    open_standard_streams();
    if (argc < 2) {
        fputs(help, stderr);
        return TOOL_USAGE;
    }
    if (asks_for_help(argc, argv)) {
        fputs(help, stdout);
        return tool_flush(TOOL_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("redlock %s\n", redlock_version());
        return tool_flush(TOOL_OK);
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return tool_flush(commands[i].run(argc - 1, argv + 1));
        }
    }
    tool_usage("there is no command \"%s\"", argv[1]);
}
