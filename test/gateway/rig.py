"""Gateways and requests for the tests of the gateway, in addition to stand.py.

The environment has the paths of the programs: GATEWAY, MASTERS and SOURCES.
"""

import http.client
import json
import os
import socket
import subprocess
import tempfile

from stand import TIMEOUT_S, Masters, adopt, run, skip, start, until  # noqa: F401

LONG_MS = 3000000  # of locks whose end is not tested


class Gateway:
    """A gateway on a free port."""

    def __init__(self, masters, *arguments, nodes=None, timeout="10s"):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = start(
            [os.environ["GATEWAY"], "--listen", "127.0.0.1:0", "--node-timeout", timeout]
            + ["--max-ttl", "50m", "--drain", "0s", *arguments],
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
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def dial(self, text=b""):
        """Connects, sends bytes, and returns the socket."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
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

    def total(self, name):
        """Returns the sum of a metric over its labels."""
        lines = self.ask("GET", "/metrics").text.splitlines()
        values = [line.split()[1] for line in lines if line.startswith(f"redlock_{name}{{")]
        assert values, f"there is no metric {name}"
        return sum(map(float, values))

    def stop(self, code=0):
        """Ends the gateway as an operator does; neither leaks nor misbehaviour may be found."""
        self.process.terminate()
        self.wait(code)

    def wait(self, code=0):
        ended = self.process.wait(TIMEOUT_S)
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
        self.json = json.loads(self.text) if self.text and self.type.endswith("json") else None

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
    """Reads a socket to its end; a reset is also an end."""
    text = b""
    try:
        while True:
            piece = client.recv(65536)
            if not piece:
                return text
            text += piece
    except (ConnectionResetError, BrokenPipeError):
        return text
