"""Requests that are too large, broken, or odd are refused, and do not affect others."""

import json
import random

from raw import HEAD, exchange, is_served, post, status_of
from rig import Gateway, Masters, read_answers, run, until


def what_is_too_large_is_refused_or_cut():
    gateway = Gateway(Masters(), "--idle", "5s")
    begin = b"POST /v1/locks/k HTTP/1.1\r\nContent-Type: application/json\r\n" + HEAD
    for text in (
        begin + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 100000,
        begin + b"Content-Length: 99999999999999999999999\r\n\r\n",
        begin + b"Content-Length: -1\r\n\r\n",
        begin + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffffffff\r\n" + b"x" * 100000,
        begin + b"Transfer-Encoding: chunked\r\n\r\n" + 100 * (b"400\r\n" + b"x" * 0x400 + b"\r\n"),
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
        (b"GET / HTTP/1.1\r\n\r\n", (400,)),
        (b"GET / HTTP/1.0\r\n\r\n", (400,)),
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
        (b"GET /v1/status HTTP/1.1\r\nHost: localhost\0.evil\r\n\r\n", (400, 403)),
        (b"GET /v1/status# HTTP/1.1\r\n" + HEAD + b"\r\n", (400,)),
        (post("k#1", "{}"), (400,)),
        (post("k", "{}", b"Content-Length: 5\r\n"), (400,)),
        (post("k", "{}", b"Transfer-Encoding: chunked\r\n"), (0, 400)),
        (post("k", "{}", b"Transfer-Encoding: gzip, chunked\r\n"), (400,)),
        (post("k", "{}", b"Expect: miracles\r\n"), (417,)),
        (b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"broken\r\n\r\n", (0, 400, 413)),
    ):
        status = status_of(exchange(gateway, text, half_closes=b"k HTTP" not in text))
        assert status in statuses, (text, status)
    head = exchange(gateway, b"HEAD /v1/status HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert status_of(head) == 200 and head.endswith(b"\r\n\r\n"), head
    is_served(gateway)
    assert gateway.metric("gateway_locks") == 0
    gateway.stop()


def what_ends_in_doubt_is_refused_and_ends_its_connection():
    """A proxy may see the end of such a request elsewhere, and let another request through."""
    gateway = Gateway(Masters())
    hidden = b"POST /v1/locks/hidden HTTP/1.1\r\n" + HEAD + b"\r\n"
    length = b"%d\r\n" % len(hidden)
    for text in (
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length : " + length,
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length\t: " + length,
        b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"Content-Length : " + length,
        b"GET /v1/status?x HTTP/1.1\r\n" + HEAD + b"Content-Length : " + length,
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length: 0\0" + length,
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\0\r\n\r\n{}",
        b"POST /v1/locks/k HTTP/1.0\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n+0\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\0, x\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding : chunked\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b": x\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"a(b): x\r\n",
        b"POST /v1/locks/k HTTP/1.1\r\n" + HEAD + b"a\xff: x\r\n",
        b"HEAD /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length: " + length,
        b"HEAD /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n",
        b"TRACE /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length: " + length,
        b"FOO /v1/locks/k HTTP/1.1\r\n" + HEAD + b"Content-Length: " + length,
    ):
        answer = exchange(gateway, text + b"\r\n" + hidden, half_closes=False)
        assert status_of(answer) == 400 and answer.count(b"HTTP/1.") == 1, (text, answer)
    connect = b"CONNECT localhost:80 HTTP/1.1\r\n" + HEAD
    for more in (b"", b"Content-Length : " + length, b"Transfer-Encoding: chunked\r\n\r\n0\r\n"):
        assert exchange(gateway, connect + more + b"\r\n" + hidden, half_closes=False) == b"", more
    for method, status in ((b"HEAD", 200), (b"FOO", 405)):
        text = method + b" /v1/status HTTP/1.1\r\n" + HEAD + b"Content-Length: 0\r\n\r\n"
        assert status_of(exchange(gateway, text)) == status, text
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


def a_body_after_a_word_is_read_and_one_in_chunks_refused():
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
        assert status_of(client.recv(1000)) == 400
    assert gateway.status()["held"] == 1
    gateway.stop()


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
        what_is_too_large_is_refused_or_cut,
        odd_requests_are_refused,
        what_ends_in_doubt_is_refused_and_ends_its_connection,
        odd_keys_are_keys_or_refused,
        what_is_no_json_is_refused,
        requests_sent_ahead_are_answered_in_order,
        a_body_after_a_word_is_read_and_one_in_chunks_refused,
        anything_may_be_sent,
    )
