"""The clients of examples/gateway/clients, as cron jobs run them."""

import os
import subprocess
import tempfile

from rig import Gateway, Masters, run, start, until

FOLDER = os.path.join(os.environ["SOURCES"], "clients")
CLIENTS = (["sh", os.path.join(FOLDER, "cron.sh")], ["python3", os.path.join(FOLDER, "cron.py")])


def start_job(client, gateway, key, *command):
    return start(
        [*client, key, *command],
        env=dict(os.environ, REDLOCK_GATEWAY=f"http://127.0.0.1:{gateway.port}"),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(job):
    said = job.communicate()[1]
    return job.returncode, said


def touch(folder, name):
    with open(os.path.join(folder, name), "w", encoding="ascii"):
        pass


def a_job_runs_under_the_lock_and_one_at_a_time():
    masters = Masters()
    gateway = Gateway(masters)
    for client in CLIENTS:
        with tempfile.TemporaryDirectory() as folder:
            go_on = os.path.join(folder, "go-on")
            script = f"while ! [ -e {go_on} ]; do sleep 0.05; done; exit 7"
            job = start_job(client, gateway, "job", "sh", "-c", script)
            until(lambda: gateway.status()["held"] == 1, "the lock is held")
            for other in CLIENTS:
                code, said = end(start_job(other, gateway, "job", "false"))
                assert code == 75 and "409" in said, (code, said)
            touch(folder, "go-on")
            assert end(job)[0] == 7
        assert gateway.status()["held"] == 0 and masters.has("job") == 0
        assert end(start_job(client, gateway, "job", "true")) == (0, "")
    gateway.stop()


def a_job_that_lost_its_lock_is_ended():
    masters = Masters()
    gateway = Gateway(masters)
    jobs = [
        start_job(client, gateway, f"job{number}", "sleep", "3600")
        for number, client in enumerate(CLIENTS)
    ]
    until(lambda: gateway.status()["held"] == len(jobs), "the locks are held")
    for number in range(len(jobs)):
        masters.delete(f"job{number}")
    for job in jobs:
        assert end(job)[0] != 0
    gateway.stop()


def a_signal_ends_the_job_before_the_lock():
    """The job takes its time to end, and has the lock until then."""
    masters = Masters()
    gateway = Gateway(masters)
    for client in CLIENTS:
        with tempfile.TemporaryDirectory() as folder:
            script = (
                f"cd {folder}; trap ': >asked; while ! [ -e go-on ]; do sleep 0.05; done; exit 3' "
                "TERM; : >begun; while :; do sleep 0.05; done"
            )
            job = start_job(client, gateway, "job", "sh", "-c", script)
            until(lambda: os.path.exists(os.path.join(folder, "begun")), "the job has begun")
            job.terminate()
            until(lambda: os.path.exists(os.path.join(folder, "asked")), "the job is asked to end")
            assert job.poll() is None and gateway.status()["held"] == 1
            touch(folder, "go-on")
            assert end(job) == (3, "")
            assert gateway.status()["held"] == 0 and masters.has("job") == 0
    gateway.stop()


def the_exit_code_is_the_jobs_also_when_the_lock_was_lost():
    masters = Masters()
    gateway = Gateway(masters)
    for client in CLIENTS:
        with tempfile.TemporaryDirectory() as folder:
            script = f"cd {folder}; while ! [ -e go-on ]; do sleep 0.05; done; exit 5"
            job = start_job(client, gateway, "a b/c%?", "sh", "-c", script)
            until(lambda: gateway.status()["held"] == 1, "the lock is held")
            assert gateway.status()["locks"][0]["key"] == "a%20b%2Fc%25%3F"
            masters.delete("a b/c%?")
            touch(folder, "go-on")
            code, said = end(job)
            assert code == 5 and "the lock was lost" in said, (code, said)
    gateway.stop()


def what_cannot_be_run_says_why():
    masters = Masters()
    gateway = Gateway(masters)
    for client in CLIENTS:
        code, said = end(start_job(client, gateway, "job", "/no/such/command"))
        assert code == 127 and "/no/such/command" in said, (code, said)
        assert gateway.status()["held"] == 0 and masters.has("job") == 0
    gateway.stop()
    for client in CLIENTS:
        code, said = end(start_job(client, gateway, "job", "true"))
        assert code == 69 and said != "", (code, said)


if __name__ == "__main__":
    run(
        a_job_runs_under_the_lock_and_one_at_a_time,
        a_job_that_lost_its_lock_is_ended,
        a_signal_ends_the_job_before_the_lock,
        the_exit_code_is_the_jobs_also_when_the_lock_was_lost,
        what_cannot_be_run_says_why,
    )
