"""Slow clients, and clients that break off or ask for too much, do not affect others."""

import signal
import socket

from raw import HEAD, is_served, post, reset
from rig import Gateway, Masters, run, until


def one_byte_now_and_then_is_not_enough():
    gateway = Gateway(Masters(), "--idle", "3s")
    drips = [
        b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /v1/locks/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    ]
    for begin in drips:
        client = gateway.dial(begin)
        client.settimeout(0.05)

        def is_closed():
            try:
                client.sendall(b"0")
                return client.recv(65536) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        until(is_closed, "the connection is closed")
        client.close()
    with gateway.dial() as silent:
        assert silent.recv(1) == b""
    assert gateway.metric("gateway_connections_timed_out_total") >= 4
    is_served(gateway)
    gateway.stop()


def many_slow_ones_keep_nobody_out():
    gateway = Gateway(
        Masters(), "--max-waiters", "8", "--max-connections", "100", "--idle", "10m"
    )
    slow = [gateway.dial(b"GET /v1/status HTTP/1.1\r\nX: ") for _ in range(500)]
    is_served(gateway)
    assert gateway.metric("gateway_connections") <= 100
    assert gateway.metric("gateway_connections_evicted_total") > 0
    for client in slow:
        client.close()
    gateway.stop()


def one_that_waits_is_not_closed_in_favour_of_others():
    gateway = Gateway(
        Masters(), "--max-waiters", "8", "--max-connections", "100", "--idle", "3s"
    )
    lock = gateway.acquire("k")
    waiting = gateway.connect()
    kind = {"Content-Type": "application/json"}
    waiting.request("POST", "/v1/locks/k", b'{"wait_ms": 600000}', kind)
    until(lambda: gateway.status()["waiting"] == 1, "it waits")
    slow = [gateway.dial(b"GET / ") for _ in range(300)]
    until(lambda: gateway.metric("gateway_connections_timed_out_total") > 0, "slow ones are closed")
    gateway.release(lock)
    assert waiting.getresponse().status == 201
    waiting.close()
    for client in slow:
        client.close()
    gateway.stop()


def too_many_locks_and_waiters_are_refused():
    gateway = Gateway(Masters(), "--max-locks", "3", "--max-waiters", "2")
    gateway.acquire("a")
    waiting = []
    for count in (1, 2):
        waiting.append(gateway.dial(post("a", '{"wait_ms": 600000}')))
        until(lambda: gateway.status()["waiting"] == count, "it waits")
    assert gateway.ask("POST", "/v1/locks/b").is_problem(503, "full")
    waiting.pop().close()
    until(lambda: gateway.status()["waiting"] == 1, "it is canceled")
    gateway.acquire("b")
    answer = gateway.ask("POST", "/v1/locks/c")
    assert answer.is_problem(503, "full") and answer.json["where"] == "--max-locks", answer
    gateway.stop()
    waiting.pop().close()


def answers_that_nobody_reads_are_bounded():
    gateway = Gateway(Masters(), "--idle", "3s")
    ask = b"GET /openapi.json HTTP/1.1\r\n" + HEAD + b"\r\n"
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", gateway.port))
    client.sendall(ask * 1000)
    until(lambda: gateway.metric("gateway_connections_timed_out_total") > 0, "it is closed")
    client.close()
    is_served(gateway)
    gateway.stop()


def requests_without_end_are_cut():
    gateway = Gateway(Masters())
    ask = b"GET /openapi.json HTTP/1.1\r\n" + HEAD + b"\r\n"
    client = gateway.dial()
    try:
        for _ in range(1000):
            client.sendall(ask * 1000)
    except OSError:
        pass
    assert gateway.metric("gateway_connections_cut_total") > 0
    client.close()
    is_served(gateway)
    gateway.stop()


def one_that_breaks_is_canceled_however_it_breaks():
    gateway = Gateway(Masters())
    lock = gateway.acquire("k")
    ahead = b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"\r\n"
    ways = (
        lambda client: client.close(),
        lambda client: client.shutdown(socket.SHUT_WR),
        reset,
        lambda client: (client.sendall(ahead * 100), client.close()),
        lambda client: (client.sendall(ahead * 100), reset(client)),
        lambda client: (client.sendall(b"\0"), client.shutdown(socket.SHUT_WR)),
    )
    for count, breaks in enumerate(ways, 1):
        client = gateway.dial(post("k", '{"wait_ms": 600000}'))
        until(lambda: gateway.status()["waiting"] == 1, "it waits")
        breaks(client)
        until(
            lambda: gateway.metric("gateway_requests_canceled_total") == count, "it is canceled"
        )
        until(lambda: gateway.status()["waiting"] == 0, "it is gone")
        client.close()
        gateway.ask("POST", f"/v1/locks/k/{lock['id']}/renew")
    gateway.release(lock)
    is_served(gateway)
    gateway.release(gateway.acquire("k"))
    gateway.stop()


def a_lock_that_is_granted_to_a_broken_connection_is_released():
    masters = Masters()
    gateway = Gateway(masters, timeout="60s")
    for number, breaks in enumerate((lambda client: client.close(), reset)):
        masters.order_all("stop")
        client = gateway.dial(post(f"k{number}", '{"ttl_ms": 3000000}'))
        until(lambda: gateway.status()["waiting"] == 1, "it waits")
        breaks(client)
        until(
            lambda: gateway.metric("gateway_requests_canceled_total") == number + 1,
            "it is canceled",
        )
        masters.order_all("continue")
        until(lambda: masters.has(f"k{number}") == 0, "the key is free")
        gateway.release(gateway.acquire(f"k{number}", wait_ms=60000))
    assert gateway.status()["held"] == 0
    gateway.stop()


def a_lock_that_is_granted_while_the_connection_breaks_is_released():
    """When the stopped gateway continues, it finds that both have happened."""
    for breaks in (lambda client: client.close(), reset):
        masters = Masters()
        gateway = Gateway(masters, timeout="60s")
        gateway.ask("GET", "/v1/locks/k")
        masters.order_all("stop")
        client = gateway.dial(post("k", '{"ttl_ms": 3000000}'))
        until(lambda: gateway.status()["waiting"] == 1, "it waits")
        gateway.process.send_signal(signal.SIGSTOP)
        masters.order_all("continue")
        until(lambda: masters.has("k") == 3, "the masters have granted it")
        breaks(client)
        gateway.process.send_signal(signal.SIGCONT)
        until(lambda: masters.has("k") == 0, "the key is free")
        names = ("gateway_locks_returned_total", "gateway_requests_canceled_total")
        assert sum(gateway.metric(name) for name in names) == 1
        gateway.stop()


if __name__ == "__main__":
    run(
        one_byte_now_and_then_is_not_enough,
        many_slow_ones_keep_nobody_out,
        one_that_waits_is_not_closed_in_favour_of_others,
        too_many_locks_and_waiters_are_refused,
        answers_that_nobody_reads_are_bounded,
        requests_without_end_are_cut,
        one_that_breaks_is_canceled_however_it_breaks,
        a_lock_that_is_granted_to_a_broken_connection_is_released,
        a_lock_that_is_granted_while_the_connection_breaks_is_released,
    )
