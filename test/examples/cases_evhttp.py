"""An HTTP server whose handlers wait for locks."""

import http.client
import signal
import threading
import time

from program import refuses
from server import Server
from stand import TIMEOUT_S, Masters, run, until

WORK_S = 0.05


def ask(server, path="/reports/7"):
    """Returns the status of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def ask_at_once(servers, paths):
    """Returns the statuses of all answers, and the time to the last."""
    statuses = []
    threads = [
        threading.Thread(
            target=lambda path=path, i=i: statuses.append(ask(servers[i % len(servers)], path))
        )
        for i, path in enumerate(paths)
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(statuses), time.monotonic() - begun


def stop(server):
    server.signal(signal.SIGTERM)
    server.wait(0)


def one_report_is_made_once_at_a_time_on_two_servers():
    masters = Masters()
    servers = [Server("evhttp", masters) for _ in range(2)]
    statuses, took = ask_at_once(servers, ["/reports/7"] * 10)
    made = statuses.count(200)
    assert made >= 1 and statuses == [200] * made + [503] * (10 - made), statuses
    assert took >= made * WORK_S, took
    for server in servers:
        stop(server)
    until(lambda: masters.has("/reports/7") == 0, "the key is free")


def requests_after_the_end_are_refused():
    server = Server("evhttp", Masters())
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
    connection.request("GET", "/reports/7")
    assert connection.getresponse().read() == b""
    server.signal(signal.SIGTERM)
    try:
        while True:
            connection.request("GET", "/reports/7")
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 400, 503), answer.status
    except (http.client.HTTPException, OSError):
        pass  # it has ended
    server.wait(0)


def reports_do_not_wait_for_each_other():
    server = Server("evhttp", Masters())
    paths = [f"/reports/{i}" for i in range(200)]
    until(lambda: ask_at_once([server], paths)[1] < len(paths) * WORK_S, "they overlap")
    stop(server)


def clients_that_go_away_harm_nobody():
    masters = Masters()
    server = Server("evhttp", masters)
    for _ in range(20):
        client = server.dial()
        client.sendall(b"GET /reports/7 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.close()
    until(lambda: ask(server) == 200, "it answers others")
    stop(server)


def paths_that_are_no_key_are_refused():
    server = Server("evhttp", Masters(1))
    assert ask(server, "/reports/7::fence") == 400
    assert "::fence" in server.said()
    until(lambda: ask(server, "/") == 200, "it goes on")
    stop(server)


def without_masters_it_says_so_and_recovers():
    masters = Masters()
    server = Server("evhttp", masters)
    masters.order_all("kill")
    assert ask(server) == 503
    masters.order_all("restart")
    until(lambda: ask(server) == 200, "it recovers")
    stop(server)


def an_end_replies_to_those_who_wait():
    masters = Masters()
    server = Server("evhttp", masters)
    masters.order_all("stop")
    clients = [server.dial() for _ in range(5)]
    for client in clients:
        client.sendall(b"GET /reports/7 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert ask(server, "/::fence") == 400  # the server has read the others before this
    server.signal(signal.SIGTERM)
    masters.order_all("continue")
    server.wait(0)
    for client in clients:
        answer = client.recv(1000)
        assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503")), answer


def mistakes_are_reported():
    refuses("evhttp", word="usage")
    refuses("evhttp", "80", word="usage")
    refuses("evhttp", "0", "localhost", word="nodes[0]")
    server = Server("evhttp", Masters(1))
    refuses("evhttp", str(server.port), "redis://127.0.0.1:1", word="free port")


if __name__ == "__main__":
    run(
        one_report_is_made_once_at_a_time_on_two_servers,
        requests_after_the_end_are_refused,
        reports_do_not_wait_for_each_other,
        clients_that_go_away_harm_nobody,
        paths_that_are_no_key_are_refused,
        without_masters_it_says_so_and_recovers,
        an_end_replies_to_those_who_wait,
        mistakes_are_reported,
    )
