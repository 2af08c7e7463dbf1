"""A server of locks over TCP: each connection is a lock.

    cases_bufferevent.py [PROGRAM]

A PROGRAM of examples/servers does the same on another event loop.
"""

import select
import signal
import sys

from program import refuses
from server import Server
from stand import Masters, run, until

NAME = (sys.argv[1:] or ["bufferevent"])[0]


class Client:
    """A connection that wants a lock."""

    def __init__(self, server, line=b"k\n"):
        self.socket = server.dial()
        self.socket.sendall(line)

    def is_answered(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def has_lock(self):
        """Waits for the answer."""
        try:
            answer = self.socket.recv(100)
        except ConnectionResetError:
            answer = b""
        assert answer in (b"", b"held\n"), answer
        return answer == b"held\n"

    def close(self):
        self.socket.close()


def a_connection_has_its_lock_until_it_ends():
    masters = Masters()
    servers = [Server(NAME, masters) for _ in range(2)]
    first = Client(servers[0])
    assert first.has_lock()
    others = [Client(server) for server in servers]
    assert not any(client.is_answered() for client in others)
    first.close()
    winner = until(lambda: [c for c in others if c.is_answered()], "one of the others has it")[0]
    assert winner.has_lock()
    loser = others[1 - others.index(winner)]
    assert not loser.is_answered()
    winner.close()
    assert loser.has_lock()
    loser.close()
    until(lambda: masters.has("k") == 0, "the key is free")


def a_client_that_breaks_while_it_waits_leaves_the_queue():
    masters = Masters()
    server = Server(NAME, masters)
    first = Client(server)
    assert first.has_lock()
    for _ in range(50):
        Client(server).close()
    last = Client(server)
    first.close()
    assert last.has_lock()
    last.close()
    until(lambda: masters.has("k") == 0, "the key is free")


def a_lock_that_is_lost_closes_the_connection():
    masters = Masters()
    server = Server(NAME, masters)
    client = Client(server)
    assert client.has_lock()
    masters.delete("k")
    assert not client.has_lock()
    again = Client(server)
    assert again.has_lock()


def lines_that_are_no_key_close_the_connection():
    server = Server(NAME, Masters(1))
    for line in (b"\n", b"x::fence\n", b"x" * 5000, b"a\nb\n" * 1000):
        client = Client(server, line)
        until(lambda c=client: not c.has_lock(), "it is closed")
    good = Client(server, b"k\r\n")
    assert good.has_lock()


def a_client_that_says_more_loses_the_lock():
    masters = Masters()
    server = Server(NAME, masters)
    client = Client(server)
    assert client.has_lock()
    client.socket.sendall(b"more\n")
    assert not client.has_lock()
    until(lambda: masters.has("k") == 0, "the key is free")


def masters_that_die_close_connections_that_hold_and_others_wait():
    masters = Masters()
    server = Server(NAME, masters)
    holder, waiting = Client(server), None
    assert holder.has_lock()
    waiting = Client(server)
    masters.order_all("kill")
    assert not holder.has_lock()
    masters.order_all("restart")
    assert waiting.has_lock()


def the_end_of_the_server_is_the_end_of_connections():
    masters = Masters(1)
    server = Server(NAME, masters)
    clients = [Client(server) for _ in range(3)]
    idle = server.dial()
    until(lambda: any(c.is_answered() for c in clients), "one of them has it")
    server.signal(signal.SIGTERM)
    server.wait(0)
    answers = [c.has_lock() for c in clients]
    assert answers.count(True) == 1, answers
    assert masters.has("k") == 0
    idle.close()


def connections_break_while_the_server_drains():
    masters = Masters()
    server = Server(NAME, masters)
    clients = [Client(server, b"k%d\n" % (i // 2)) for i in range(200)]
    until(lambda: sum(c.is_answered() for c in clients) == 100, "half of them have a lock")
    masters.order("stop", 0)  # the drain waits for this
    server.signal(signal.SIGTERM)
    for client in clients:
        client.close()
    masters.order("continue", 0)
    server.wait(0)
    assert all(masters.has("k%d" % i) == 0 for i in range(100))


def mistakes_are_reported():
    refuses(NAME, word="usage")
    refuses(NAME, "0", "localhost", word="nodes[0]")
    server = Server(NAME, Masters(1))
    refuses(NAME, str(server.port), "redis://127.0.0.1:1", word="free port")


if __name__ == "__main__":
    run(
        a_connection_has_its_lock_until_it_ends,
        a_client_that_breaks_while_it_waits_leaves_the_queue,
        a_lock_that_is_lost_closes_the_connection,
        lines_that_are_no_key_close_the_connection,
        a_client_that_says_more_loses_the_lock,
        masters_that_die_close_connections_that_hold_and_others_wait,
        the_end_of_the_server_is_the_end_of_connections,
        connections_break_while_the_server_drains,
        mistakes_are_reported,
    )
