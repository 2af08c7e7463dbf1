"""The clients of examples/gateway/clients, as cron jobs run them."""

import json
import os
import socket
import subprocess
import tempfile
import threading

from rig import Gateway, Masters, adopt, run, start, token_file, until

FOLDER = os.path.join(os.environ["SOURCES"], "clients")
CLIENTS = (["sh", os.path.join(FOLDER, "cron.sh")], ["python3", os.path.join(FOLDER, "cron.py")])


def start_job(client, gateway, key, *command, stdout=None, **variables):
    variables["REDLOCK_GATEWAY"] = f"http://127.0.0.1:{gateway.port}"
    return start(
        [*client, key, *command],
        env=dict(os.environ, **variables),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )


def end(job):
    said = job.communicate()[1]
    return job.returncode, said


def touch(folder, name):
    with open(os.path.join(folder, name), "w", encoding="ascii"):
        pass


class Oddity:
    """Grants a lock for 15 s if `grants` is set; gives each other request the same odd answer."""

    def __init__(self, answer, grants=True):
        self.answer, self.grants = answer, grants
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = threading.Event()
        self.asked = []
        adopt(self)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.ended.is_set():
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        request = b""
        try:
            while b"\r\n\r\n" not in request:
                request += client.recv(65536)
            self.asked.append(request.split(b"\r\n")[0].decode())
            if self.grants and len(self.asked) == 1:
                body = json.dumps({"id": "0" * 48, "validity_ms": 15000}, separators=",:")
                head = f"HTTP/1.1 201 Created\r\nContent-Length: {len(body)}\r\n\r\n"
                client.sendall(head.encode() + body.encode())
            elif self.answer is None:  # an endless answer, one byte at a time
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n")
                while not self.ended.wait(0.1):
                    client.sendall(b" ")
            else:
                client.sendall(self.answer)
        except OSError:
            pass
        client.close()

    def end(self):
        self.ended.set()
        self.listener.close()


CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
CUT_GRANT = b'HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{"id":"00'
NONSENSE = b"HTTP/1.1 503 Unavailable\r\nContent-Length: 9\r\n\r\n[[1, \xff{]]"


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


def is_at_its_end(pipe):
    """Returns whether no process still has the other end of the pipe."""
    os.set_blocking(pipe.fileno(), False)
    try:
        return os.read(pipe.fileno(), 1) == b""
    except BlockingIOError:
        return False


def a_job_that_lost_its_lock_is_ended():
    """All processes of the job end: also in a pipeline, and if they ignore the request to end."""
    masters = Masters()
    gateway = Gateway(masters)
    endless = "while :; do sleep 0.05; done"
    script = f"{endless} | cat & (trap '' TERM; {endless}) | cat"
    jobs = [
        start_job(client, gateway, f"job{number}", "sh", "-c", script, stdout=subprocess.PIPE)
        for number, client in enumerate(CLIENTS)
    ]
    until(lambda: gateway.status()["held"] == len(jobs), "the locks are held")
    for number in range(len(jobs)):
        masters.delete(f"job{number}")
    for job in jobs:
        assert job.wait() != 0
        until(lambda: is_at_its_end(job.stdout), "no process of the job is left")
        assert "the lock was lost" in job.stderr.read()
        job.stdout.close()
        job.stderr.close()
    gateway.stop()


def what_a_job_leaves_running_ends_before_the_lock():
    masters = Masters()
    gateway = Gateway(masters)
    for client in CLIENTS:
        job = start_job(
            client, gateway, "job", "sh", "-c", "sleep 3600 & exit 3", stdout=subprocess.PIPE
        )
        assert job.wait() == 3
        until(lambda: masters.has("job") == 0, "the lock is released")
        until(lambda: is_at_its_end(job.stdout), "no process of the job is left")
        job.stdout.close()
        job.stderr.close()
    gateway.stop()


def count_children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return len(file.read().split())


def a_job_ends_with_a_client_that_is_killed():
    masters = Masters()
    gateway = Gateway(masters)
    for client in CLIENTS:
        script = "while :; do sleep 0.05; done | cat"
        job = start_job(
            client, gateway, "job", "sh", "-c", f"echo; {script}", stdout=subprocess.PIPE
        )
        assert os.read(job.stdout.fileno(), 1) == b"\n"
        until(lambda: count_children(job.pid) == 2, "the job and what watches it have begun")
        job.kill()
        job.wait()
        until(lambda: is_at_its_end(job.stdout), "no process of the job is left")
        job.stdout.close()
        job.stderr.close()
        masters.delete("job")
    gateway.stop()


def a_job_without_renewals_is_ended_before_its_time_is_over():
    jobs = []
    for answer in (CUT, NONSENSE, b"", None):
        for client in CLIENTS:
            gateway = Oddity(answer)
            jobs.append((gateway, start_job(client, gateway, "job", "sleep", "3600")))
    for gateway, job in jobs:
        code, said = end(job)
        assert code == 143 and "ends with its TTL" in said, (code, said)
        assert any("/renew" in line for line in gateway.asked), gateway.asked
        gateway.end()


def an_answer_that_is_no_grant_is_reported():
    for answer in (CUT_GRANT, NONSENSE, b"", b"HTTP/1.1 2"):
        for client in CLIENTS:
            gateway = Oddity(answer, grants=False)
            code, said = end(start_job(client, gateway, "job", "echo", "ran"))
            assert code == 69 and said != "" and "Traceback" not in said, (code, said)
            gateway.end()


def a_token_is_shown():
    token = "0123456789abcdef"
    with token_file(token) as file:
        gateway = Gateway(Masters(), "--token-file", file.name)
        for client in CLIENTS:
            code, said = end(start_job(client, gateway, "job", "true"))
            assert code == 69 and "401" in said, (code, said)
            code, said = end(
                start_job(
                    client, gateway, "job", "true", REDLOCK_GATEWAY_TOKEN_FILE=file.name
                )
            )
            assert (code, said) == (0, ""), (code, said)
            code, said = end(
                start_job(
                    client, gateway, "job", "true", REDLOCK_GATEWAY_TOKEN_FILE="/no/such/file"
                )
            )
            assert code == 69 and "/no/such/file" in said, (code, said)
    gateway.process.terminate()
    gateway.wait()


def a_signal_ends_the_job_before_the_lock():
    """The job takes time to end, and keeps the lock until then."""
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
            code, said = end(job)
            assert code == 3 and "lock" not in said, (code, said)
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
        what_a_job_leaves_running_ends_before_the_lock,
        a_job_ends_with_a_client_that_is_killed,
        a_job_without_renewals_is_ended_before_its_time_is_over,
        an_answer_that_is_no_grant_is_reported,
        a_token_is_shown,
        a_signal_ends_the_job_before_the_lock,
        the_exit_code_is_the_jobs_also_when_the_lock_was_lost,
        what_cannot_be_run_says_why,
    )
