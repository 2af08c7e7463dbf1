"""A program of examples/cases that listens on a port, which is its first argument."""

import errno
import socket

from program import Program
from stand import TIMEOUT_S, until


class Server(Program):
    def __init__(self, name, masters):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        super().__init__(name, str(self.port), masters=masters)
        until(self.is_listening, f"{name} listens")

    def is_listening(self):
        assert self.is_running(), self.said()
        try:
            self.dial().close()
        except OSError as error:
            assert error.errno == errno.ECONNREFUSED, error
            return False
        return True

    def dial(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
