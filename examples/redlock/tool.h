/* What the commands of `redlock` share: exit codes, messages, entry points. */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>

/* Exit codes; those of sysexits.h where one fits. */
enum tool_exit {
    TOOL_OK = 0,
    TOOL_FAILED = 1,         /* a command has found a problem */
    TOOL_USAGE = 64,         /* the command line is invalid */
    TOOL_NO_QUORUM = 69,     /* too few nodes answered */
    TOOL_SYSTEM = 71,        /* the operating system refused a resource */
    TOOL_NOT_ACQUIRED = 75,  /* others hold the lock */
    TOOL_LOST = 76,          /* the lock was lost while the command ran */
    TOOL_NOT_PERMITTED = 77, /* nodes refuse the login, the database, or rights */
    TOOL_CANNOT_EXECUTE = 126,
    TOOL_NOT_FOUND = 127,
};

/* Makes all further messages events, for programs. */
void tool_speak_json(void);

/* Prints "redlock: ..." on stderr, as one line fit for a terminal, or the event "message". */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the message and, for people, where to find help, and exits with TOOL_USAGE. */
_Noreturn void tool_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the message and the cause in errno, and exits with TOOL_SYSTEM. */
_Noreturn void tool_refused(const char *service);

/*
 * Flushes the standard output. Returns `code`; or TOOL_SYSTEM in place of TOOL_OK, after a message,
 * if something could not be written.
 */
int tool_flush(int code);

/* Run a command, whose name is argv[0]. Return the exit code. */
int run_main(int argc, char **argv);
int dev_main(int argc, char **argv);
int inspect_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int watch_main(int argc, char **argv);
int list_main(int argc, char **argv);
int nodes_main(int argc, char **argv);

#endif
