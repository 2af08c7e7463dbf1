/*
 * `redlock run`: the front, the process that the shell knows. It starts the keeper, gives the
 * command the terminal, forwards signals, stops when the command is stopped, and ends with the exit
 * code that the keeper reports.
 *
 * The front is also the keeper's deputy: if the keeper dies, or has not ended the command in time,
 * the front kills all descendants. Both are subreapers, so none escapes. If both die, or one while
 * the other is stopped, the kernel kills the command's process group (tether.h).
 */
#include "family.h"
#include "job.h"
#include "keeper.h"
#include "report.h"
#include "talk.h"
#include "tether.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct front {
    const struct job *job;
    pid_t keeper_pid;
    int keeper; /* socket to the keeper */
    int signals;
    talk_deadline *reported; /* latest deadline from the keeper */
    int deadline;            /* timer */
    pid_t group;             /* process group of the command; 0: not known yet */
    int terminal;            /* terminal of the session; -1: none */
    bool has_reported;       /* whether the keeper has reported the exit code */
    int code;
    int ended_by; /* signal that ended the command, or the waiting; 0: none */
};

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM,
                                SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM};

/*
 * Blocks the signals that the front reads from a descriptor. Signals that were ignored at the
 * start, for instance by nohup, stay ignored, also for the command. SIGCHLD must reach the keeper
 * even if the caller has blocked or ignored it.
 */
static void block_signals(struct job *job, sigset_t *taken) {
    struct sigaction action;
    sigset_t blocked;
    sigset_t needed;

    signal(SIGCHLD, SIG_DFL);
    sigemptyset(taken);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        if (sigaction(passed_on[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
            sigaddset(taken, passed_on[i]);
        }
    }
    sigaddset(taken, SIGTSTP);
    sigaddset(taken, SIGCONT);
    blocked = *taken;
    sigaddset(&blocked, SIGTTOU); /* the terminal may be given away from the background */
    sigaddset(&blocked, SIGPIPE); /* messages that nobody reads must not end it */
    sigprocmask(SIG_BLOCK, &blocked, &job->mask);
    sigemptyset(&needed);
    sigaddset(&needed, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &needed, NULL);
}

/* ---------------------------------------------------------------------------------- the
 * terminal */

/* Returns whether the shell's job is in the foreground or the command has the terminal. */
static bool is_in_foreground(const struct front *front) {
    pid_t group = tcgetpgrp(front->terminal);

    return group == getpgrp() || (group == front->group && group > 0);
}

static void give_terminal(const struct front *front) {
    if (front->terminal >= 0 && front->group > 0 && tcgetpgrp(front->terminal) == getpgrp()) {
        tcsetpgrp(front->terminal, front->group);
    }
}

/*
 * Gives the command the terminal if the terminal is both its input and its output. In a pipeline
 * other processes of the job may need it more: then the command gets it when it reads from it.
 */
static void offer_terminal(const struct front *front) {
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
        give_terminal(front);
    }
}

static void take_terminal(const struct front *front) {
    if (front->terminal >= 0 && front->group > 0 && tcgetpgrp(front->terminal) == front->group) {
        tcsetpgrp(front->terminal, getpgrp());
    }
}

static void pass_on(const struct front *front, int signal_number) {
    talk_send(front->keeper, TALK_SIGNAL, signal_number);
}

/* Lets the command continue after `fg` or `bg`. */
static void go_on(const struct front *front) {
    offer_terminal(front);
    pass_on(front, SIGCONT);
}

/*
 * Stops by the SIGTSTP that was sent. Returns true when the shell has continued the job; false at
 * once in an orphaned group, which nobody could continue.
 */
static bool stop_here(void) {
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigpending(&set);
    return sigismember(&set, SIGCONT) == 1;
}

/* Stops the shell's job together with the command. */
static void stop_job(const struct front *front, bool needs_terminal) {
    take_terminal(front);
    kill(0, SIGTSTP);
    if (!stop_here() && needs_terminal) {
        pass_on(front, SIGHUP); /* it would be stopped again and again */
    }
    go_on(front);
}

/* Handles the message that the command was stopped. */
static void on_stopped(const struct front *front, int signal_number) {
    bool needs_terminal = signal_number == SIGTTIN || signal_number == SIGTTOU;
    bool has_terminal = isatty(STDIN_FILENO) || tcgetpgrp(front->terminal) == front->group;

    if (front->terminal < 0 || !(needs_terminal || has_terminal)) {
        tool_say("%s: the command is stopped, and keeps the lock", job_title(front->job));
    } else if (needs_terminal && is_in_foreground(front)) {
        give_terminal(front);
        pass_on(front, SIGCONT);
    } else {
        stop_job(front, needs_terminal);
    }
}

/* ------------------------------------------------------------------------------------ the
 * events */

static void on_signal(struct front *front) {
    struct signalfd_siginfo info;

    if (read(front->signals, &info, sizeof(info)) != sizeof(info)) {
        return;
    }
    if (info.ssi_signo == SIGTSTP) {
        pass_on(front, SIGTSTP);
        raise(SIGTSTP);
        stop_here();
        go_on(front);
    } else if (info.ssi_signo == SIGCONT) {
        go_on(front);
    } else {
        pass_on(front, (int)info.ssi_signo);
    }
}

/* A stopped keeper neither renews the lock nor ends the command. */
static bool is_keeper_stopped(const struct front *front) {
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)front->keeper_pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == front->keeper_pid;
}

/*
 * Returns the instant at which the front acts in place of the keeper; 0: never. The keeper acts at
 * the margin, and so does the front if the keeper is stopped then; otherwise the front gives it 1/4
 * of the margin.
 */
static uint64_t deputy_at(const struct front *front, bool is_stopped) {
    uint64_t deadline_ms = *front->reported;
    uint64_t margin_ms = front->job->margin_ms;

    return deadline_ms == 0 ? 0 : deadline_ms - (is_stopped ? margin_ms : margin_ms * 3 / 4);
}

/* Sets the timer to the first instant at which the front may have to act, or to the next one. */
static void set_deadline(const struct front *front) {
    uint64_t at_ms = deputy_at(front, true);

    if (at_ms <= talk_now_ms()) {
        at_ms = deputy_at(front, false);
    }
    const struct itimerspec time = {
        .it_value = {.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000 * 1000000)}};

    timerfd_settime(front->deadline, TFD_TIMER_ABSTIME, &time, NULL);
}

/* Ends everything in place of the keeper, and reports that. */
static void act_as_deputy(struct front *front, const char *why) {
    uint64_t deadline_ms = *front->reported;
    uint64_t until_ms = talk_wall_ms() + deadline_ms - talk_now_ms();
    bool was_killed = family_end();
    struct report report;

    front->has_reported = true;
    front->code = TOOL_LOST;
    report_init(&report, front->job);
    report.valid_until_ms = deadline_ms == 0 ? 0 : until_ms;
    report_killed(&report, why, was_killed);
    report_gone(&report);
    report_ended(&report, front->code);
}

static void on_keeper_gone(struct front *front) {
    int status;

    if (waitpid(front->keeper_pid, &status, 0) == front->keeper_pid && WIFEXITED(status)) {
        front->has_reported = true; /* the keeper has printed why */
        front->code = WEXITSTATUS(status);
    } else {
        act_as_deputy(front, "the process that kept the lock has died");
    }
}

static void on_talk(struct front *front) {
    struct talk talk;
    int received;

    while ((received = talk_receive(front->keeper, &talk)) > 0) {
        if (talk.kind == TALK_STARTED) {
            front->group = talk.number;
            family_record(front->group);
            (void)tether_group(front->group); /* the keeper reports if this fails */
            offer_terminal(front);
            talk_send(front->keeper, TALK_GO, 0);
        } else if (talk.kind == TALK_DEADLINE) {
            set_deadline(front);
        } else if (talk.kind == TALK_STOPPED) {
            on_stopped(front, talk.number);
        } else if (talk.kind == TALK_SIGNALLED) {
            front->ended_by = talk.number;
        } else if (talk.kind == TALK_ENDED) {
            front->has_reported = true;
            front->code = talk.number;
        }
    }
    if (received < 0 && !front->has_reported) {
        on_keeper_gone(front);
    }
}

/*
 * Checks the deadline itself: a front that was stopped wakes up with an old timer, although the
 * keeper has renewed the lock all along.
 */
static void on_deadline(struct front *front) {
    uint64_t at_ms = deputy_at(front, is_keeper_stopped(front));

    if (at_ms != 0 && at_ms <= talk_now_ms()) {
        act_as_deputy(front, "the lock was not renewed in time, nor the command ended");
    } else {
        set_deadline(front);
    }
}

static void serve(struct front *front) {
    struct pollfd polled[] = {{.fd = front->keeper, .events = POLLIN},
                              {.fd = front->signals, .events = POLLIN},
                              {.fd = front->deadline, .events = POLLIN}};

    while (!front->has_reported) {
        if (poll(polled, 3, -1) < 0) {
            continue; /* a signal: EINTR */
        }
        if (polled[2].revents != 0) {
            on_deadline(front);
        } else if (polled[1].revents != 0) {
            on_signal(front);
        } else {
            on_talk(front);
        }
    }
}

static void start_keeper(struct front *front) {
    int sockets[2];

    if (family_adopt() != 0) {
        tool_refused("/proc or prctl");
    }
    if (talk_open(sockets) != 0) {
        tool_refused("socketpair");
    }
    front->reported = talk_share_deadline();
    if (front->reported == NULL) {
        tool_refused("mmap");
    }
    front->keeper_pid = fork();
    if (front->keeper_pid < 0) {
        tool_refused("fork");
    }
    if (front->keeper_pid == 0) {
        close(sockets[0]);
        keeper_main(front->job, sockets[1], front->reported);
    }
    family_record(front->keeper_pid);
    close(sockets[1]);
    front->keeper = sockets[0];
}

/*
 * Ends by the SIGINT or SIGQUIT of the terminal that ended the command, so that a shell ends its
 * loop or script. If the command had the terminal, the shell's job did not get the signal.
 */
static void end_as_the_command(const struct front *front) {
    const struct rlimit none = {0};
    sigset_t set;

    if (front->terminal < 0 || (front->ended_by != SIGINT && front->ended_by != SIGQUIT)) {
        return;
    }
    setrlimit(RLIMIT_CORE, &none);
    if (front->group > 0 && tcgetpgrp(front->terminal) == front->group) {
        take_terminal(front);
        kill(0, front->ended_by);
    } else {
        raise(front->ended_by);
    }
    sigemptyset(&set);
    sigaddset(&set, front->ended_by);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int run_main(int argc, char **argv) {
    struct job job;
    struct front front = {.job = &job};
    sigset_t taken;

    job_read(&job, argc, argv);
    block_signals(&job, &taken);
    start_keeper(&front);
    front.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    front.deadline = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    front.terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (front.signals < 0 || front.deadline < 0) {
        tool_refused("signalfd");
    }
    serve(&front);
    end_as_the_command(&front);
    take_terminal(&front);
    return front.code;
}
