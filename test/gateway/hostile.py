"""Slow and hostile HTTP clients harm nobody."""

import json
import random
import signal
import socket
import struct

from rig import Gateway, Masters, read_answers, run, until

HEAD = b"Host: localhost\r\n"


def is_served(gateway):
    """Asserts that a good client has what it asks for."""
    gateway.release(gateway.acquire("good"))


def status_of(text):
    return int(text.split(b" ", 2)[1]) if text.startswith(b"HTTP/1.") else 0


def exchange(gateway, text, half_closes=True):
    """Sends bytes, and returns all that comes back until the connection ends."""
    with gateway.dial() as client:
        try:
            client.sendall(text)
            if half_closes:
                client.shutdown(socket.SHUT_WR)
        except OSError:  # the gateway has closed it
            pass
        return read_answers(client)


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
    waiting.request("POST", "/v1/locks/k", b'{"wait_ms": 600000}', {"Content-Type": "application/json"})
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


def post(key, body="", more=b""):
    return (
        f"POST /v1/locks/{key} HTTP/1.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n".encode()
        + HEAD
        + more
        + b"\r\n"
        + body.encode()
    )


def what_is_too_large_is_refused_or_cut():
    gateway = Gateway(Masters(), "--idle", "5s")
    begin = b"POST /v1/locks/k HTTP/1.1\r\nContent-Type: application/json\r\n" + HEAD
    for text in (
        begin + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 100000,
        begin + b"Content-Length: 99999999999999999999999\r\n\r\n",
        begin + b"Content-Length: -1\r\n\r\n",
        begin + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffffffff\r\n" + b"x" * 100000,
        begin + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 0x1000 + b"\r\n" + 100 * (b"1000\r\n" + b"x" * 0x1000 + b"\r\n"),
        begin + b"Transfer-Encoding: chunked\r\n\r\n" + b"7" * 10000000,
        begin + b"X: " + b"x" * 1000000,
        begin + b"X: y\r\n" * 100000,
        b"GET /" + b"x" * 1000000,
        b"GET /v1/locks/" + b"x" * 2000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
    ):
        status = status_of(exchange(gateway, text))
        assert status in (0, 400, 413), (text[:100], status)
        is_served(gateway)
    assert gateway.metric("gateway_connections_cut_total") > 0
    assert gateway.metric("gateway_locks") == 0
    gateway.stop()


def odd_requests_are_refused():
    gateway = Gateway(Masters())
    for text, statuses in (
        (b"\0" * 100 + b"\r\n\r\n", (0, 400)),
        (b"GET / HTTP/1.1\r\n\r\n", (403,)),
        (b"GET / HTTP/1.0\r\n\r\n", (403,)),
        (b"GET / HTTP/9.9\r\n" + HEAD + b"\r\n", (0, 200, 400, 505)),
        (b"GET http://evil/v1/status HTTP/1.1\r\n" + HEAD + b"\r\n", (400,)),
        (b"GET //evil/v1/status HTTP/1.1\r\n" + HEAD + b"\r\n", (400,)),
        (b"GET * HTTP/1.1\r\n" + HEAD + b"\r\n", (400, 404)),
        (b"GET v1/status HTTP/1.1\r\n" + HEAD + b"\r\n", (400, 404)),
        (b"CONNECT localhost:80 HTTP/1.1\r\n" + HEAD + b"\r\n", (0, 400, 404, 405, 501)),
        (b"FOO / HTTP/1.1\r\n" + HEAD + b"\r\n", (0, 400, 405, 501)),
        (b"TRACE / HTTP/1.1\r\n" + HEAD + b"\r\n", (405,)),
        (b"GET / HTTP/1.1\r\n" + HEAD + HEAD + b"\r\n", (400,)),
        (b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"Origin: http://evil\r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"Origin: null\r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"Sec-Fetch-Site: cross-site\r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\nHost: localhost.evil\r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\nHost: localhost:x\r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\nHost: [::1\r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\nHost: \r\n\r\n", (403,)),
        (b"GET /v1/status HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", (200,)),
        (post("k", "{}", b"Content-Length: 5\r\n"), (400,)),
        (post("k", "{}", b"Transfer-Encoding: chunked\r\n"), (0, 400)),
        (post("k", "{}", b"Transfer-Encoding: gzip, chunked\r\n"), (400,)),
        (post("k", "{}", b"Expect: miracles\r\n"), (417,)),
        (b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"broken\r\n\r\n", (0, 400, 413)),
    ):
        status = status_of(exchange(gateway, text, half_closes=b"k HTTP" not in text))
        assert status in statuses, (text, status)
    head = exchange(gateway, b"HEAD /v1/status HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert status_of(head) == 405 and head.endswith(b"\r\n\r\n"), head
    is_served(gateway)
    assert gateway.metric("gateway_locks") == 0
    gateway.stop()


def odd_keys_are_keys_or_refused():
    masters = Masters()
    gateway = Gateway(masters)
    for text, key in (
        ("%00", b"\0"),
        ("a%00b", b"a\0b"),
        ("%ff%FE", b"\xff\xfe"),
        ("%C3%A9", b"\xc3\xa9"),
        ("a%2Fb", b"a/b"),
        ("%25", b"%"),
        ("%2525", b"%25"),
        ("%0d%0aX:y", b"\r\nX:y"),
        ("%3Cscript%3E", b"<script>"),
        ("..%2f..", b"../.."),
        ("a+b;c=d@e", b"a+b;c=d@e"),
        ("x" * 1024, b"x" * 1024),
        ("%00" * 1024, b"\0" * 1024),
    ):
        answer = gateway.ask("POST", f"/v1/locks/{text}")
        assert answer.status == 201, (text, answer)
        assert masters.has(key) == 3, text
        assert "\n" not in answer.headers["Location"]
        view = gateway.ask("GET", answer.headers["Location"].rsplit("/", 1)[0]).json
        assert view["held"] and view["key"] == answer.json["key"]
        gateway.release(answer.json)
        assert masters.has(key) == 0, text
    for text in ("", "%", "%0", "%zz", "%%30%30", "a%", '"', "<", "{", "x" * 1025, "%00" * 1025):
        text = text.encode().replace(b" ", b"")
        answer = exchange(gateway, b"POST /v1/locks/%s HTTP/1.1\r\n%s\r\n" % (text, HEAD))
        assert status_of(answer) == 400 and b'"bad-key"' in answer, (text, answer)
    for text in (b"\xc3\xa9", b"a\0b", b"a\tb"):
        answer = exchange(gateway, b"POST /v1/locks/%s HTTP/1.1\r\n%s\r\n" % (text, HEAD))
        assert status_of(answer) in (0, 400), (text, answer)
    assert gateway.metric("gateway_locks") == 0
    gateway.stop()


def what_is_no_json_is_refused():
    gateway = Gateway(Masters())
    for body in (
        b"{",
        b"[]",
        b"1",
        b'"x"',
        b"null",
        b"{}{}",
        b"{} x",
        b"{'ttl_ms': 1}",
        b'{"ttl_ms": 1000, "ttl_ms": 2000}',
        b'{"ttl_ms": 99999999999999999999999999}',
        b'{"ttl_ms": 1e999}',
        b'{"ttl_ms": NaN}',
        b'{"ttl_ms": 01000}',
        b'{"owner": "\xff"}',
        b'{"owner": "\\u0000"}',
        b'{"owner": "\\ud800"}',
        b'{"\\u0000": 1}',
        b"{\0}",
        b"\0",
        b" ",
        b"[" * 16000,
        b'{"owner":' * 1700,
        b"\xef\xbb\xbf{}",
    ):
        answer = gateway.ask(
            "POST", "/v1/locks/k", body, headers={"Content-Type": "application/json"}
        )
        assert answer.is_problem(400, "bad-json"), (body[:40], answer)
    assert gateway.metric("gateway_locks") == 0
    gateway.stop()


def requests_sent_ahead_are_answered_in_order():
    gateway = Gateway(Masters())
    text = b"".join(post(f"k{i}", '{"ttl_ms": 2000000}') for i in range(50))
    text += b"GET /v1/status HTTP/1.1\r\nConnection: close\r\n" + HEAD + b"\r\n"
    with gateway.dial(text) as client:
        answers = read_answers(client)
    bodies = [json.loads(part) for part in answers.split(b"\n") if part.startswith(b"{")]
    assert [body.get("key") for body in bodies[:-1]] == [f"k{i}" for i in range(50)]
    assert bodies[-1]["held"] == 50
    gateway.stop()


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


def reset(client):
    """Closes by a reset."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


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
        until(lambda: gateway.status()["waiting"] == 0 or not masters_answer(gateway), "it breaks")
        masters.order_all("continue")
        until(lambda: masters.has(f"k{number}") == 0, "the key is free")
        gateway.release(gateway.acquire(f"k{number}", wait_ms=60000))
    assert gateway.status()["held"] == 0
    gateway.stop()


def a_lock_that_is_granted_while_the_connection_breaks_is_released():
    """Both have happened when the gateway, which was stopped, looks again."""
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


def bodies_in_chunks_and_after_a_word_are_read():
    gateway = Gateway(Masters())
    body = '{"ttl_ms": 2000000}'
    chunks = f"{len(body[:5]):x}\r\n{body[:5]}\r\n{len(body[5:]):x}\r\n{body[5:]}\r\n0\r\n\r\n"
    head = post("a", body, b"Expect: 100-continue\r\n")[: -len(body)]
    with gateway.dial(head) as client:
        assert status_of(client.recv(1000)) == 100
        client.sendall(body.encode())
        assert status_of(client.recv(1000)) == 201
    head = post("b", "", b"Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 0\r\n", b"")
    with gateway.dial(head + chunks.encode()) as client:
        assert status_of(client.recv(1000)) == 201
    assert gateway.status()["held"] == 2
    gateway.stop()


def masters_answer(gateway):
    return gateway.metric("gateway_requests_canceled_total") == 0


def anything_may_be_sent():
    gateway = Gateway(Masters())
    chance = random.Random(42)
    seeds = [
        post("k", '{"ttl_ms": 1000, "owner": "x"}'),
        b"GET /v1/locks/k HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"DELETE /v1/locks/k/0 HTTP/1.1\r\n" + HEAD + b"\r\n",
        post("k", "", b"Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 0\r\n", b"")
        + b"2\r\n{}\r\n0\r\n\r\n",
    ]
    for _ in range(600):
        text = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(6)):
            place = chance.randrange(len(text))
            if chance.random() < 0.5:
                text[place] = chance.randrange(256)
            elif chance.random() < 0.5:
                text[place:place] = bytes(chance.choices(b"\r\n\0 %/{}:", k=3))
            else:
                del text[place : place + chance.randrange(20)]
        exchange(gateway, bytes(text) or b"x")
    is_served(gateway)
    until(lambda: gateway.status()["held"] == 0, "all locks lapse")
    gateway.stop()


if __name__ == "__main__":
    run(
        one_byte_now_and_then_is_not_enough,
        many_slow_ones_keep_nobody_out,
        one_that_waits_is_not_closed_in_favour_of_others,
        too_many_locks_and_waiters_are_refused,
        what_is_too_large_is_refused_or_cut,
        odd_requests_are_refused,
        odd_keys_are_keys_or_refused,
        what_is_no_json_is_refused,
        requests_sent_ahead_are_answered_in_order,
        answers_that_nobody_reads_are_bounded,
        requests_without_end_are_cut,
        one_that_breaks_is_canceled_however_it_breaks,
        a_lock_that_is_granted_to_a_broken_connection_is_released,
        a_lock_that_is_granted_while_the_connection_breaks_is_released,
        bodies_in_chunks_and_after_a_word_are_read,
        anything_may_be_sent,
    )
