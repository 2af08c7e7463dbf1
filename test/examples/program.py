"""A program of examples/cases, run by a test; of another folder, with the path from there."""

import os
import signal
import subprocess
import tempfile

from stand import TIMEOUT_S, adopt, start

FOLDER = os.path.join(os.environ["BUILD"], "examples", "cases")


class Program:
    """A process whose last arguments are the masters' URIs."""

    def __init__(self, name, *arguments, masters=None, nodes=(), stdin=subprocess.DEVNULL, stdout=None):
        self.output = tempfile.TemporaryFile(mode="w+")
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = start(
            [os.path.join(FOLDER, name), *arguments, *(masters.uris if masters else nodes)],
            stdin=stdin,
            stdout=stdout or self.output,
            stderr=self.errors,
        )
        adopt(self)

    def printed(self):
        self.output.seek(0)
        return self.output.read()

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Stops the process, and returns when it stands."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def is_running(self):
        return self.process.poll() is None

    def wait(self, *codes):
        """Waits for its end, with one of the codes, and neither a leak nor misbehaviour found."""
        ended = self.process.wait(TIMEOUT_S)
        said = self.said()
        assert ended in codes, f"ended with {ended}: {said}"
        assert "runtime error" not in said and "Sanitizer" not in said, said
        return ended

    def end(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()
        self.output.close()
        self.errors.close()


def refuses(name, *arguments, word):
    """Asserts that the program ends at once and prints the reason."""
    program = Program(name, *arguments)
    program.wait(1, 2)
    assert word in program.said(), f"{arguments}: {program.said()}"
