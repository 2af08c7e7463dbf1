/*
 * Runs a job on only one of the machines on which cron starts it at the same time.
 *
 *     cc -o cron cron.c $(pkg-config --cflags --libs redlock libevent_core)
 *     * * * * *  cron KEY 30 'rotate-logs --all' redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * The key stays taken for 30 s (the argument), even if the job ends sooner: a machine whose clock
 * is slow finds it taken, and does not run the job again. Choose more than the difference of the
 * clocks plus wait_ms, and less than the time from one run to the next. (SIGKILL ends this program
 * and the job's shell, but not processes that the shell started: `redlock run` ends all.)
 */
#include <event2/event.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct event_base *base;
static redlock_client *client;
static redlock_lock *held;
static struct event *child_ended;
static const char *command;
static pid_t child; /* leader of a process group; 0: the job is not running */
static int exit_code = EXIT_FAILURE;

static void end(void) {
    event_del(child_ended); /* otherwise the loop would wait for signals */
    redlock_client_close(client, NULL, NULL);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg;
    if (status == REDLOCK_ELOST) {
        fprintf(stderr, "another machine may have run it too: %s\n", redlock_explain(lock));
        exit_code = EXIT_FAILURE;
    }
    end();
}

static void on_child_ended(evutil_socket_t fd, short what, void *arg) {
    int status;

    (void)fd, (void)what, (void)arg;
    if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
        child = 0;
        exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
        redlock_release(held, on_released, NULL);
    }
}

static void on_termination(int number) {
    if (child <= 0 || kill(-child, SIGTERM) != 0) { /* otherwise the job's end releases it */
        _exit(128 + number);
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)status, (void)arg;
    fprintf(stderr, "the job is stopped: %s\n", redlock_explain(lock));
    on_termination(SIGTERM); /* for jobs that ignore it see `redlock run` */
}

static void run_job(redlock_lock *lock) {
    held = lock;
    if ((child = fork()) == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* ends with its parent, which renews the lock */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    } else if (child > 0) {
        setpgid(child, child); /* parent and child both call it: either may be first */
    } else {
        perror("fork"), redlock_release(held, on_released, NULL);
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg;
    if (status == REDLOCK_OK) {
        run_job(lock);
    } else if (status == REDLOCK_EHELD) {
        puts("another machine has this run"), exit_code = EXIT_SUCCESS, end();
    } else {
        fprintf(stderr, "not run: %s\n", redlock_explain(lock)), end();
    }
}

int main(int argc, char **argv) {
    uint64_t hold_ms = argc < 5 ? 0 : strtoull(argv[2], NULL, 10) * 1000;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error;

    if (hold_ms == 0 || (base = event_base_new()) == NULL ||
        (child_ended = evsignal_new(base, SIGCHLD, on_child_ended, NULL)) == NULL ||
        event_add(child_ended, NULL) != 0) {
        fputs("usage: cron KEY SECONDS COMMAND NODE...\n", stderr);
        return 2;
    }
    options.nodes = (const char *const *)argv + 4;
    options.node_count = (size_t)argc - 4;
    request.key = argv[1], command = argv[3];
    request.ttl_ms = request.min_hold_ms = hold_ms; /* for more than 30 s set options.max_ttl_ms */
    request.wait_ms = 2000;  /* for machines that all ask at once, and slow masters */
    request.watchdog = true; /* the job may take longer */
    request.on_lost = on_lost;
    if (redlock_client_create(base, &options, &client, &error) != REDLOCK_OK ||
        redlock_acquire(client, &request, on_acquired, NULL, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", client == NULL ? error.message : redlock_client_error(client));
        return 2;
    }
    signal(SIGTERM, on_termination);
    event_base_dispatch(base);
    event_free(child_ended), event_base_free(base);
    return exit_code;
}
