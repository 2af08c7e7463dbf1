/* A rig for tests of the command `redlock`: five masters, and processes of the command. */
#ifndef REDLOCK_TEST_COMMAND_RIG_H
#define REDLOCK_TEST_COMMAND_RIG_H

#include "folder.h"
#include "masters.h"
#include "poll_timeout.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RIG_MASTERS 5
/* Limit of every wait, in ms: generous, for busy machines. */
#define RIG_LIMIT_MS 60000
#define RIG_PATH (FOLDER_SIZE + 32)

/*
 * A rig. $REDLOCK_NODES is set to the masters, $ALIVE to a pipe: the processes under test open it
 * for writing, so the test notices when all of them have ended. $FOLDER is for files.
 */
struct rig {
    struct masters *masters;
    char folder[FOLDER_SIZE];
    char output_path[RIG_PATH]; /* stdout and stderr of the processes, one after the other */
    int alive;                  /* the pipe's end for reading */
    pid_t pid;                  /* the last process that was started and not waited for yet; or 0 */
};

/* Fixtures for cmocka; *state is the rig. */
int rig_set_up(void **state);
int rig_tear_down(void **state);

/* Starts the command with these arguments, up to a NULL. */
void rig_start(struct rig *rig, ...) __attribute__((sentinel));

/* Starts the command with an array of arguments, the first of which is its own name. */
void rig_start_with(struct rig *rig, const char *const *argv);

/* Starts another program in the same surroundings, such as one that starts the command. */
void rig_start_program(struct rig *rig, const char *file, const char *const *argv);

/* Waits for the end of the process. Returns its exit code, or 128 + signal. */
int rig_wait(struct rig *rig);

/* Runs the command to its end; returns its exit code. */
#define RIG_RUN(rig, ...) (rig_start((rig), __VA_ARGS__, NULL), rig_wait(rig))

/* Wait until a process has written to $ALIVE; until all processes that had it open have ended. */
void rig_wait_for_life(struct rig *rig);
void rig_wait_for_death(struct rig *rig);

/* Returns the output so far, which the caller frees. */
char *rig_output(const struct rig *rig);

/* Waits for the text in the output; returns whether it came. */
bool rig_has_said(const struct rig *rig, const char *text);
void rig_wait_for_text(const struct rig *rig, const char *text);

/* Fails the test unless each line of the output is an event, as of `redlock run --json`. */
void rig_assert_events(const struct rig *rig);

/* Returns the last number after `name` in the output, as in "name":17; 0: there is none. */
uint64_t rig_number(const struct rig *rig, const char *name);

/* Waits for the only child of a process, and returns it. */
pid_t rig_child_of(pid_t pid);

/* Returns the time since 1970, in ms. */
uint64_t rig_wall_ms(void);

/* Pauses between two checks of a condition; fails the test at the limit. */
void rig_wait_a_moment(struct poll_timeout *timeout, const char *condition);

#define RIG_WAIT_UNTIL(condition)                                                                  \
    for (struct poll_timeout rig_timeout = {0}; !(condition);                                      \
         rig_wait_a_moment(&rig_timeout, #condition)) {                                            \
    }

#endif
