"""What the tests of the gateway share: TAP, masters, gateways, and requests.

A test is a function whose name tells what must hold. The environment has the paths of the programs:
GATEWAY, MASTERS and SOURCES. Nothing waits for time: until() looks again until a condition holds.
"""

import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

PATIENCE_S = 120
LONG_MS = 3000000  # of locks whose end is not tested
_died_with_us = ctypes.CDLL(None, use_errno=True).prctl
_alive = []  # what has to be ended, the newest last


def adopt(thing):
    """Has thing.end() called at the end of the test."""
    _alive.append(thing)


def until(condition, what):
    """Looks until the condition holds, and returns its value."""
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() - begun > PATIENCE_S:
            raise AssertionError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.005)


def start(arguments, **options):
    """Starts a process that ends with this one, however this one ends."""
    return subprocess.Popen(
        arguments, preexec_fn=lambda: _died_with_us(1, signal.SIGKILL), **options
    )


class Masters:
    """Masters that the test can kill, restart, stop and continue."""

    def __init__(self, count=3):
        self.process = subprocess.Popen(  # ends with its input: with this process, or before
            [os.environ["MASTERS"], str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        adopt(self)
        self.uris = self.process.stdout.readline().split()
        assert len(self.uris) == count, "the masters did not start"
        self.ports = [int(uri.rsplit(":", 1)[1].split("?")[0]) for uri in self.uris]

    def order(self, verb, index):
        self.process.stdin.write(f"{verb} {index}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def order_all(self, verb):
        for index in range(len(self.ports)):
            self.order(verb, index)

    def ask(self, index, *words):
        """Sends one command, and returns the whole answer as bytes."""
        with socket.create_connection(("127.0.0.1", self.ports[index])) as master:
            words = [word if isinstance(word, bytes) else word.encode() for word in words]
            parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
            master.sendall(b"*%d\r\n" % len(words) + b"".join(parts))
            master.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                piece = master.recv(65536)
                if not piece:
                    return answer
                answer += piece

    def has(self, key):
        """Returns at how many masters the key is."""
        return sum(self.ask(i, "EXISTS", key) == b":1\r\n" for i in range(len(self.ports)))

    def delete(self, key):
        for index in range(len(self.ports)):
            self.ask(index, "DEL", key)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Gateway:
    """A gateway on a free port."""

    def __init__(self, masters, *arguments, nodes=None, timeout="10s"):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = start(
            [os.environ["GATEWAY"], "--listen", "127.0.0.1:0", "--node-timeout", timeout]
            + ["--max-ttl", "50m", *arguments],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=dict(os.environ, REDLOCK_NODES=",".join(nodes or masters.uris)),
        )
        adopt(self)
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://"), line + self.said()
        self.port = int(line.rsplit(":", 1)[1])

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Sends a request, and returns its answer. `body` is an object, or bytes as they are."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        own = connection is None
        connection = connection or self.connect()
        try:
            connection.request(method, path, body=body, headers=headers)
            return Answer(connection.getresponse())
        finally:
            if own:
                connection.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def dial(self, text=b""):
        """Connects, sends bytes, and returns the socket."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        client.sendall(text)
        return client

    def acquire(self, key, **fields):
        """Acquires a lock, which must succeed."""
        fields.setdefault("ttl_ms", LONG_MS)
        answer = self.ask("POST", f"/v1/locks/{key}", fields)
        assert answer.status == 201, answer
        return answer.json

    def release(self, lock):
        answer = self.ask("DELETE", f"/v1/locks/{lock['key']}/{lock['id']}")
        assert answer.status == 204, answer

    def status(self):
        return self.ask("GET", "/v1/status").json

    def metric(self, name):
        """Returns the value of a metric without labels."""
        for line in self.ask("GET", "/metrics").text.splitlines():
            if line.startswith(f"redlock_{name} "):
                return float(line.split()[1])
        raise AssertionError(f"there is no metric {name}")

    def stop(self, code=0):
        """Ends the gateway as an operator does; neither leaks nor misbehaviour may be found."""
        self.process.terminate()
        self.wait(code)

    def wait(self, code=0):
        ended = self.process.wait(PATIENCE_S)
        said = self.said()
        assert ended == code, f"ended with {ended}: {said}"
        assert "runtime error" not in said and "Sanitizer" not in said, said

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class Answer:
    """An answer that has been read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.type = (response.getheader("Content-Type") or "").split(";")[0]
        self.text = response.read().decode("utf-8", "surrogateescape")
        self.json = json.loads(self.text) if self.type.endswith("json") else None

    def is_problem(self, status, code):
        return self.status == status and self.json is not None and self.json.get("code") == code

    def __repr__(self):
        return f"{self.status} {self.text}"


def token_file(*tokens):
    """Makes a temporary file of tokens."""
    file = tempfile.NamedTemporaryFile(mode="w", prefix="redlock-tokens-")
    file.write("# tokens of a test\n\n" + "".join(token + "\n" for token in tokens))
    file.flush()
    return file


def read_answers(client):
    """Reads a socket to its end; a reset is an end, too."""
    text = b""
    try:
        while True:
            piece = client.recv(65536)
            if not piece:
                return text
            text += piece
    except (ConnectionResetError, BrokenPipeError):
        return text


def _end_all():
    while _alive:
        _alive.pop().end()


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def run(*tests):
    """Runs the tests, prints TAP, and exits."""
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        try:
            test()
            said = ""
        except Exception:
            said = traceback.format_exc()
            for thing in _alive:
                if isinstance(thing, Gateway):
                    said += thing.said()
        _end_all()
        failed += bool(said)
        print(f"{'not ' if said else ''}ok {number} - {test.__name__}", flush=True)
        for line in said.splitlines():
            print(f"# {line}", flush=True)
    sys.exit(failed > 0)
