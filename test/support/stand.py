"""TAP, processes that end with the test, and masters, for tests in Python.

A test is a function whose name says what must hold. MASTERS in the environment is the path of
ordered-masters. Tests do not wait for fixed times: until() checks a condition until it holds.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import traceback

TIMEOUT_S = 120
_died_with_us = ctypes.CDLL(None, use_errno=True).prctl
_alive = []  # the newest last


def adopt(thing):
    """Makes the end of the test call thing.end()."""
    _alive.append(thing)


def until(condition, what):
    """Waits until the condition holds, and returns its value."""
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() - begun > TIMEOUT_S:
            raise AssertionError(f"not within {TIMEOUT_S} s: {what}")
        time.sleep(0.005)


def start(arguments, **options):
    """Starts a process that ends with this one, however this one ends."""
    return subprocess.Popen(
        arguments, preexec_fn=lambda: _died_with_us(1, signal.SIGKILL), **options
    )


class Masters:
    """Masters that the test can kill, restart, stop and continue."""

    def __init__(self, count=3):
        self.process = subprocess.Popen(  # ends with its input: with this process, or earlier
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
            said += "".join(thing.said() for thing in _alive if hasattr(thing, "said"))
        _end_all()
        failed += bool(said)
        print(f"{'not ' if said else ''}ok {number} - {test.__name__}", flush=True)
        for line in said.splitlines():
            print(f"# {line}", flush=True)
    sys.exit(failed > 0)
