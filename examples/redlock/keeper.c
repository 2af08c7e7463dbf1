/*
 * The happy path: the client connects; the lock is acquired; the child is started, and becomes the
 * command when the front says so; the child ends, and with it everything that it started; the lock
 * is released; the client is closed; the front gets the exit code.
 *
 * If the validity gets short because renewals fail, all descendants get SIGTERM, and SIGKILL while
 * there is still some validity left. If the lock is lost in another way, they get SIGTERM at once.
 * If the front dies, they get SIGKILL at once, and the lock is released.
 *
 * If the job is stopped before it has the lock, the request is canceled, and repeated when the job
 * continues.
 */
#include "keeper.h"

#include "child.h"
#include "family.h"
#include "naming.h"
#include "report.h"
#include "talk.h"
#include "tether.h"
#include "tool.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECT_MOST_MS 1000
#define TICK_LEAST_MS 5
#define TICK_MOST_MS 250
/* Interval of the checks for remaining processes of the command, while it is being ended. */
#define SWEEP_MS 10

enum phase {
    PHASE_CONNECTING, /* connecting to the nodes */
    PHASE_WAITING,    /* the lock is being acquired */
    PHASE_PAUSED,     /* the job is stopped, without a request */
    PHASE_RUNNING,    /* the child runs */
    PHASE_ENDING,     /* the child has ended; its descendants are being ended */
    PHASE_RELEASING,  /* no process is left; the lock is released and the client closed */
};

struct keeper {
    const struct job *job;
    struct event_base *base;
    redlock_client *client;
    redlock_lock *lock;
    struct event *tick;
    struct event *front_speaks;
    struct event *child_changes;
    struct event *child_fails;
    struct report report;
    struct child child;
    int front;
    talk_deadline *reported;
    enum phase phase;
    uint64_t began_ms;
    uint64_t waiting_ms;   /* instant of the request */
    uint64_t wait_left_ms; /* rest of --wait at that instant */
    uint64_t deadline_ms;  /* deadline last reported to the front */
    uint64_t kill_at_ms;   /* instant of SIGKILL, for processes that ignore SIGTERM; 0: none */
    bool stops_on_request; /* whether SIGTSTP was the last signal from the front */
    bool is_lost;          /* whether the lock is lost, or will be before a renewal */
    int code;
    int ended_by; /* signal that ended the command, or the waiting; 0: none */
};

static void tick_in(struct keeper *keeper, uint64_t ms) {
    struct timeval interval = {.tv_sec = (time_t)(ms / 1000),
                               .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

    event_add(keeper->tick, &interval);
}

static void share_deadline(struct keeper *keeper, uint64_t deadline_ms) {
    keeper->deadline_ms = deadline_ms;
    *keeper->reported = deadline_ms;
    talk_send(keeper->front, TALK_DEADLINE, 0);
}

/* ------------------------------------------------------------------------------------- the end */

static void on_drained(uint64_t unreleased, void *arg) {
    struct keeper *keeper = arg;

    (void)unreleased;
    event_base_loopbreak(keeper->base);
}

static void close_client(struct keeper *keeper) {
    keeper->phase = PHASE_RELEASING;
    event_del(keeper->tick);
    redlock_client_drain(keeper->client, on_drained, keeper);
}

static void end_with(struct keeper *keeper, int code) {
    keeper->code = code;
    close_client(keeper);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct keeper *keeper = arg;

    if (status == REDLOCK_ELOST && !keeper->is_lost) {
        report_lost(&keeper->report, redlock_explain(lock));
        keeper->code = TOOL_LOST;
    }
    close_client(keeper);
}

static void release(struct keeper *keeper) {
    redlock_lock *lock = keeper->lock;

    keeper->phase = PHASE_RELEASING;
    keeper->lock = NULL;
    event_del(keeper->tick);
    share_deadline(keeper, 0);
    report_gone(&keeper->report);
    if (redlock_release(lock, on_released, keeper) != REDLOCK_OK) {
        close_client(keeper);
    }
}

/* ----------------------------------------------------------------------- ending the processes */

static void send_to_all(int signal_number) {
    family_signal(signal_number);
    if (signal_number == SIGTERM) {
        family_signal(SIGCONT); /* what is stopped cannot end */
    }
}

static void kill_all(struct keeper *keeper) {
    keeper->kill_at_ms = talk_now_ms();
    family_signal(SIGKILL);
    tick_in(keeper, SWEEP_MS);
}

static void ask_all_to_end(struct keeper *keeper) {
    if (keeper->kill_at_ms == 0) {
        keeper->kill_at_ms = talk_now_ms() + keeper->job->grace_ms;
        send_to_all(SIGTERM);
        tick_in(keeper, SWEEP_MS);
    }
}

/* Carries out --on-lost, for a lock with no validity left except perhaps the margin. */
static void stop_working(struct keeper *keeper, const char *why, bool is_over) {
    if (!keeper->is_lost) {
        keeper->is_lost = true;
        keeper->code = TOOL_LOST;
        report_lost(&keeper->report, why);
    }
    if (keeper->job->on_lost == JOB_WARN) {
        return;
    }
    if (is_over || keeper->job->on_lost == JOB_KILL) {
        kill_all(keeper);
    } else {
        ask_all_to_end(keeper);
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct keeper *keeper = arg;

    if (status == REDLOCK_ELOST || status == REDLOCK_EEXPIRED) {
        stop_working(keeper, redlock_explain(lock), status == REDLOCK_EEXPIRED);
    }
}

static void record_deadline(struct keeper *keeper, uint64_t validity_ms) {
    uint64_t deadline_ms = talk_now_ms() + validity_ms;

    if (validity_ms == 0) {
        return;
    }
    keeper->report.valid_until_ms = talk_wall_ms() + validity_ms;
    if (keeper->job->on_lost == JOB_WARN) {
        return;
    }
    if (deadline_ms > keeper->deadline_ms + keeper->job->ttl_ms / 50 ||
        deadline_ms < keeper->deadline_ms) {
        share_deadline(keeper, deadline_ms);
    }
}

/*
 * Returns the remaining validity. For a lost lock the library reports none; the validity before the
 * loss then bounds the time that --on-lost may take.
 */
static uint64_t validity_left(const struct keeper *keeper) {
    uint64_t validity_ms = redlock_validity_ms(keeper->lock);
    uint64_t now = talk_now_ms();

    if (validity_ms > 0 || keeper->deadline_ms <= now) {
        return validity_ms;
    }
    return keeper->deadline_ms - now;
}

/* Returns the time until the validity must be checked again. */
static uint64_t next_look(const struct keeper *keeper, uint64_t validity_ms) {
    const struct job *job = keeper->job;
    uint64_t first = job->margin_ms + (job->on_lost == JOB_TERM ? job->grace_ms : 0);
    uint64_t threshold = validity_ms > first ? first : job->margin_ms;
    uint64_t left = validity_ms > threshold ? validity_ms - threshold : 0;
    uint64_t usual = keeper->kill_at_ms != 0 ? SWEEP_MS : TICK_MOST_MS;

    if (job->on_lost == JOB_WARN) {
        return usual; /* no action at any threshold */
    }
    return left > usual ? usual : left < TICK_LEAST_MS ? TICK_LEAST_MS : left;
}

/* Checks the remaining validity, and acts when it gets short. */
static void look_at_validity(struct keeper *keeper) {
    const struct job *job = keeper->job;
    uint64_t validity_ms = validity_left(keeper);

    record_deadline(keeper, redlock_validity_ms(keeper->lock));
    if (job->on_lost != JOB_WARN && validity_ms <= job->margin_ms) {
        stop_working(keeper, redlock_explain(keeper->lock), true);
    } else if (job->on_lost == JOB_TERM && validity_ms <= job->margin_ms + job->grace_ms) {
        stop_working(keeper, redlock_explain(keeper->lock), false);
    }
    if (keeper->kill_at_ms != 0 && talk_now_ms() >= keeper->kill_at_ms) {
        family_signal(SIGKILL);
    }
    tick_in(keeper, next_look(keeper, validity_ms));
}

/* ----------------------------------------------------------------------------------- the child */

static void record_end_of_child(struct keeper *keeper, int status) {
    keeper->child.pid = 0;
    keeper->phase = PHASE_ENDING;
    if (!keeper->is_lost && keeper->code == TOOL_OK) {
        keeper->ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        keeper->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    ask_all_to_end(keeper); /* processes that the command left behind */
}

static void on_child_changes(evutil_socket_t signal_number, short what, void *arg) {
    struct keeper *keeper = arg;
    pid_t pid;
    int status;

    (void)signal_number;
    (void)what;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid != keeper->child.pid) {
            continue;
        }
        if (WIFSTOPPED(status) && keeper->stops_on_request) {
            keeper->stops_on_request = false; /* the front has stopped too */
        } else if (WIFSTOPPED(status)) {
            talk_send(keeper->front, TALK_STOPPED, WSTOPSIG(status));
        } else {
            record_end_of_child(keeper, status);
        }
    }
    if (pid < 0 && errno == ECHILD && keeper->phase == PHASE_ENDING) {
        release(keeper);
    }
}

/* Reads errno of a child that could not become the command; nothing if it did. */
static void on_child_fails(evutil_socket_t fd, short what, void *arg) {
    struct keeper *keeper = arg;
    const char *name = keeper->job->command[0];
    int cause;

    (void)what;
    if (read(fd, &cause, sizeof(cause)) == sizeof(cause)) {
        tool_say("cannot execute %s: %s", name, strerror(cause));
        keeper->code = cause == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_EXECUTE;
    }
    event_free(keeper->child_fails);
    keeper->child_fails = NULL;
    child_finish(&keeper->child);
}

static void start_child(struct keeper *keeper) {
    if (child_start(&keeper->child, keeper->job, keeper->lock, keeper->report.valid_until_ms) !=
        0) {
        tool_say("cannot start a process: %s", strerror(errno));
        keeper->code = TOOL_SYSTEM;
        release(keeper);
        return;
    }
    family_record(keeper->child.pid);
    if (tether_group(keeper->child.pid) != 0) {
        tool_say("if redlock is killed, only the command's first process ends for certain: %s",
                 strerror(errno));
    }
    keeper->phase = PHASE_RUNNING;
    keeper->child_fails =
        event_new(keeper->base, keeper->child.failure, EV_READ, on_child_fails, keeper);
    event_add(keeper->child_fails, NULL);
    talk_send(keeper->front, TALK_STARTED, keeper->child.pid);
}

/* ------------------------------------------------------------------------------------ the lock */

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct keeper *keeper = arg;

    if (lock != keeper->lock) { /* the job was stopped in the meantime */
        if (status == REDLOCK_OK) {
            redlock_release(lock, NULL, NULL);
        }
        return;
    }
    report_end_waiting(&keeper->report);
    if (status == REDLOCK_OK && keeper->phase == PHASE_WAITING) {
        keeper->lock = lock;
        record_deadline(keeper, redlock_validity_ms(lock));
        report_acquired(&keeper->report, lock);
        start_child(keeper);
        if (keeper->lock != NULL) {
            look_at_validity(keeper);
        }
        return;
    }
    keeper->lock = NULL;
    if (keeper->phase == PHASE_WAITING) {
        end_with(keeper, report_not_acquired(&keeper->report, keeper->client, lock, status));
    }
}

static void acquire(struct keeper *keeper) {
    redlock_request request;

    job_request(keeper->job, &request);
    request.wait_ms = keeper->wait_left_ms;
    request.on_lost = on_lost;
    request.on_lost_arg = keeper;
    keeper->phase = PHASE_WAITING;
    keeper->waiting_ms = talk_now_ms();
    report_begin_waiting(&keeper->report, keeper->client);
    if (redlock_acquire(keeper->client, &request, on_acquired, keeper, &keeper->lock) !=
        REDLOCK_OK) {
        tool_say("%s", naming_by_options(redlock_client_error(keeper->client)));
        keeper->lock = NULL;
        end_with(keeper, TOOL_USAGE);
    }
}

/* Leaves the queue: a stopped job could not use the lock. */
static void pause_waiting(struct keeper *keeper) {
    uint64_t waited_ms = talk_now_ms() - keeper->waiting_ms;

    if (keeper->phase == PHASE_WAITING) {
        report_leave_waiting(&keeper->report);
        redlock_cancel(keeper->lock);
        keeper->lock = NULL;
        keeper->wait_left_ms -= waited_ms < keeper->wait_left_ms ? waited_ms : keeper->wait_left_ms;
    }
    event_del(keeper->tick);
    keeper->phase = PHASE_PAUSED;
}

static void resume_waiting(struct keeper *keeper) {
    keeper->phase = PHASE_CONNECTING;
    tick_in(keeper, 0);
}

/* Reports what the request waits for, and gives up if rights are missing: waiting does not help. */
static void look_at_waiting(struct keeper *keeper) {
    if (report_is_hopeless(&keeper->report, keeper->client, keeper->lock)) {
        report_end_waiting(&keeper->report);
        end_with(keeper, report_not_acquired(&keeper->report, keeper->client, keeper->lock,
                                             REDLOCK_ENOQUORUM));
        return;
    }
    report_waiting(&keeper->report);
    tick_in(keeper, TICK_MOST_MS);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct keeper *keeper = arg;

    (void)fd;
    (void)what;
    switch (keeper->phase) {
    case PHASE_CONNECTING:
        if (nodes_lack_descriptors(&keeper->job->nodes, keeper->client)) {
            end_with(keeper, TOOL_SYSTEM);
        } else if (nodes_are_known(keeper->client) ||
                   talk_now_ms() - keeper->began_ms > CONNECT_MOST_MS) {
            acquire(keeper);
        }
        if (keeper->phase != PHASE_RELEASING) {
            tick_in(keeper, TICK_LEAST_MS);
        }
        break;
    case PHASE_WAITING:
        look_at_waiting(keeper);
        break;
    case PHASE_RUNNING:
    case PHASE_ENDING:
        look_at_validity(keeper);
        break;
    case PHASE_PAUSED:
    case PHASE_RELEASING:
    default:
        break;
    }
}

/* ----------------------------------------------------------------------------------- the front */

/* Returns whether a signal asks processes to end. */
static bool is_end(int signal_number) {
    return signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP ||
           signal_number == SIGQUIT;
}

/* Sends the command a signal from the front, or pauses or gives up the wait for the lock. */
static void pass_on(struct keeper *keeper, int signal_number) {
    bool is_waiting = keeper->phase == PHASE_CONNECTING || keeper->phase == PHASE_WAITING;
    bool is_paused = keeper->phase == PHASE_PAUSED;

    if (keeper->child.pid > 0) {
        keeper->stops_on_request = signal_number == SIGTSTP;
        kill(-keeper->child.pid, signal_number);
        if (is_end(signal_number)) {
            kill(-keeper->child.pid, SIGCONT); /* what is stopped cannot end */
        }
    } else if (is_waiting && signal_number == SIGTSTP) {
        pause_waiting(keeper);
    } else if (is_paused && signal_number == SIGCONT) {
        resume_waiting(keeper);
    } else if ((is_waiting || is_paused) && is_end(signal_number)) {
        report_end_waiting(&keeper->report);
        keeper->ended_by = signal_number;
        end_with(keeper, 128 + signal_number);
    }
}

static void on_front_gone(struct keeper *keeper) {
    event_del(keeper->front_speaks);
    keeper->is_lost = true; /* nobody reads the exit code or any message */
    if (keeper->phase == PHASE_RUNNING || keeper->phase == PHASE_ENDING) {
        kill_all(keeper);
    } else if (keeper->phase != PHASE_RELEASING) {
        close_client(keeper);
    }
}

static void on_front_speaks(evutil_socket_t fd, short what, void *arg) {
    struct keeper *keeper = arg;
    struct talk talk;
    int received;

    (void)what;
    while ((received = talk_receive(fd, &talk)) > 0) {
        if (talk.kind == TALK_GO) {
            child_go(&keeper->child);
        } else if (talk.kind == TALK_SIGNAL) {
            pass_on(keeper, talk.number);
        }
    }
    if (received < 0) {
        on_front_gone(keeper);
    }
}

/* ------------------------------------------------------------------------------------------------
 */

static void listen_to_all(struct keeper *keeper) {
    struct event_base *base = keeper->base;

    keeper->tick = evtimer_new(base, on_tick, keeper);
    keeper->front_speaks =
        event_new(base, keeper->front, EV_READ | EV_PERSIST, on_front_speaks, keeper);
    keeper->child_changes = evsignal_new(base, SIGCHLD, on_child_changes, keeper);
    if (keeper->tick == NULL || keeper->front_speaks == NULL || keeper->child_changes == NULL ||
        event_add(keeper->front_speaks, NULL) != 0 || event_add(keeper->child_changes, NULL) != 0) {
        tool_say("cannot make an event");
        exit(TOOL_SYSTEM);
    }
}

void keeper_main(const struct job *job, int front, talk_deadline *deadline) {
    struct keeper keeper = {.job = job,
                            .front = front,
                            .reported = deadline,
                            .began_ms = talk_now_ms(),
                            .wait_left_ms = job->wait_ms};

    if (family_adopt() != 0) {
        tool_refused("/proc or prctl");
    }
    setpgid(0, 0); /* signals for the shell's job must come through the front */
    keeper.child.go = keeper.child.failure = -1;
    keeper.base = nodes_loop();
    keeper.client = nodes_connect(&job->nodes, keeper.base, job->owner);
    report_init(&keeper.report, job);
    listen_to_all(&keeper);
    tick_in(&keeper, 0);
    event_base_dispatch(keeper.base);
    report_ended(&keeper.report, keeper.code);
    if (keeper.code == 128 + keeper.ended_by) {
        talk_send(front, TALK_SIGNALLED, keeper.ended_by);
    }
    talk_send(front, TALK_ENDED, keeper.code);
    exit(keeper.code);
}
