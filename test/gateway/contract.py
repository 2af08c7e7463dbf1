"""The HTTP contract: each path, method, status and field of openapi.json, and no others."""

import os
import threading

from rig import Gateway, Masters, run, token_file, until
from schema import Description

description = Description(os.path.join(os.environ["SOURCES"], "openapi.json"))


def ask(gateway, method, path, body=None, headers=None, good=True):
    """Asks, and checks both sides against the description."""
    answer = gateway.ask(method, path, body, headers)
    if isinstance(body, dict) and good and answer.status < 300:
        description.check_request(method, path, body)
    description.check_answer(method, path.split("?")[0], answer)
    return answer


def refused(gateway, method, path, body, status, code, headers=None):
    answer = ask(gateway, method, path, body, headers, good=False)
    assert answer.is_problem(status, code), f"{method} {path} {body}: {answer}"
    return answer.json


def a_lock_is_acquired_renewed_inspected_and_released():
    masters = Masters()
    gateway = Gateway(masters, "--owner", "gateway-1")
    terms = {"ttl_ms": 2000000, "wait_ms": 0, "owner": "me", "fenced": True, "mode": "writer"}
    answer = ask(gateway, "POST", "/v1/locks/orders:42", terms)
    lock = answer.json
    path = f"/v1/locks/orders:42/{lock['id']}"
    assert answer.status == 201 and answer.headers["Location"] == path
    assert lock["ttl_ms"] == 2000000 and lock["owner"] == "me" and lock["mode"] == "writer"
    assert 0 < lock["validity_ms"] <= 2000000 and lock["fence"] > 0
    view = ask(gateway, "GET", "/v1/locks/orders:42").json
    assert view["held"] and view["owner"] == "gateway-1" and view["fence"] == lock["fence"]
    assert [here["owner"] for here in view["here"]] == ["me"]
    renewed = ask(gateway, "POST", path + "/renew", {"ttl_ms": 2500000}).json
    assert renewed["ttl_ms"] == 2500000 and renewed["id"] == lock["id"]
    assert ask(gateway, "POST", path + "/renew").json["ttl_ms"] == 2500000
    assert ask(gateway, "DELETE", path).status == 204
    assert masters.has("orders:42") == 0
    again = ask(gateway, "POST", "/v1/locks/orders:42", {"fenced": True, "wait_ms": 1e3}).json
    assert again["fence"] > lock["fence"] and again["ttl_ms"] == 10000
    gateway.release(again)
    gateway.stop()
    assert masters.has("orders:42") == 0


def one_that_waits_gets_the_lock_when_it_is_released():
    masters = Masters()
    gateway = Gateway(masters)
    lock = gateway.acquire("k", owner="first")
    refused(gateway, "POST", "/v1/locks/k", {"wait_ms": 1}, 409, "held")
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(
            ask(gateway, "POST", "/v1/locks/k", {"wait_ms": 600000, "owner": "second"})
        )
    )
    waiting.start()
    until(lambda: gateway.status()["waiting"] == 1, "it waits")
    status = ask(gateway, "GET", "/v1/status").json
    assert status["waiters"][0]["owner"] == "second" and status["locks"][0]["owner"] == "first"
    until(
        lambda: ask(gateway, "GET", "/v1/locks/k").json["queue_length"] == 1, "it is in the queue"
    )
    gateway.release(lock)
    waiting.join()
    assert answers[0].status == 201
    assert gateway.status()["handovers"] == 1
    gateway.stop()


def readers_share_a_key():
    gateway = Gateway(Masters())
    readers = [gateway.acquire("k", mode="reader") for _ in range(3)]
    assert ask(gateway, "GET", "/v1/locks/k").json["readers"] == 3
    refused(gateway, "POST", "/v1/locks/k", {"mode": "writer"}, 409, "held")
    refused(gateway, "POST", "/v1/locks/k", {"mode": "reader", "fenced": True}, 400, "bad-field")
    for reader in readers:
        gateway.release(reader)
    gateway.stop()


def what_makes_no_sense_is_named():
    gateway = Gateway(Masters(), "--max-ttl", "30s", "--max-wait", "10m")
    lock = gateway.acquire("k", ttl_ms=30000)
    path = f"/v1/locks/k/{lock['id']}"
    for name, values in {
        "ttl_ms": [99, 30001, -1, 0, 1.5, 1000.5, "1000", True, None, [], {}, 2**63 - 1],
        "wait_ms": [-1, 600001, "0", False, None],
        "fenced": [0, 1, "true", None],
        "mode": ["", "READER", "reader\n", 1, None],
        "owner": ["a b", "x" * 65, "\u00e9", 1, None, "a\tb"],
    }.items():
        for value in values:
            problem = refused(gateway, "POST", "/v1/locks/x", {name: value}, 400, "bad-field")
            assert problem["where"] == f"body#/{name}", problem
    refused(gateway, "POST", "/v1/locks/x", {"ttl": 1000}, 400, "bad-field")
    refused(gateway, "POST", path + "/renew", {"wait_ms": 1}, 400, "bad-field")
    refused(gateway, "GET", "/v1/locks/x?ttl_ms=1", None, 400, "bad-request")
    for page in ("/", "/page.css", "/page.js", "/openapi.json", "/metrics", "/v1/status"):
        refused(gateway, "GET", page + "?x", None, 400, "bad-request")
    refused(gateway, "GET", "/v1/events?x", None, 400, "bad-request")
    refused(gateway, "DELETE", path, {"x": 1}, 400, "bad-request")
    for key in ("redlock:marker", "x::fence", "redlock:waiting", "redlock:queues"):
        refused(gateway, "POST", f"/v1/locks/{key}", None, 400, "bad-request")
    refused(gateway, "POST", "/v1/locks/x", {"owner": "x" * 20000}, 413, "too-large")
    refused(gateway, "POST", path + "/renew", {"owner": "x" * 20000}, 413, "too-large")
    for place in ("/v1/locks/x", path + "/renew"):
        refused(gateway, "POST", place, b"{}", 415, "not-json")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        refused(gateway, "POST", place, b"ttl_ms=1", 415, "not-json", form)
    gateway.stop()


def what_is_not_there_is_reported():
    gateway = Gateway(Masters())
    lock = gateway.acquire("k")
    gone = gateway.acquire("gone")
    gateway.release(gone)
    for key, lock_id in (
        ("k", lock["id"][:8] + "0" * 40),
        ("k", "0" * 40),
        ("k", "x"),
        ("k", lock["id"][:-1] + ("0" if lock["id"][-1] != "0" else "1")),
        ("k", lock["id"] + "0"),
        ("k", lock["id"][:8] + "ffffffff" + lock["id"][16:]),
        ("other", lock["id"]),
        ("gone", gone["id"]),
    ):
        refused(gateway, "DELETE", f"/v1/locks/{key}/{lock_id}", None, 404, "no-such-lock")
        refused(gateway, "POST", f"/v1/locks/{key}/{lock_id}/renew", None, 404, "no-such-lock")
    for path in ("/v1", "/v1/locks", "/x", "/v1/locks/k/i/x", "/v1/locks/k/i/renew/x"):
        refused(gateway, "GET", path, None, 404, "not-found")
    for method, path, allowed in (
        ("PUT", "/v1/locks/k", "POST, GET, HEAD"),
        ("GET", "/v1/locks/k/i", "DELETE"),
        ("HEAD", "/v1/locks/k/i", "DELETE"),
        ("GET", "/v1/locks/k/i/renew", "POST"),
        ("POST", "/v1/status", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
    ):
        answer = ask(gateway, method, path)
        assert answer.status == 405 and answer.headers["Allow"] == allowed, answer
        assert method == "HEAD" or answer.is_problem(405, "bad-method"), answer
    gateway.stop()


def head_is_get_without_a_body():
    """All on one connection: a body would be read as the next answer."""
    gateway = Gateway(Masters())
    until(lambda: gateway.ask("GET", "/healthz").status == 200, "it grants locks")
    connection = gateway.connect()
    for path, method, _ in description.operations():
        if method == "get":
            path = path.replace("{key}", "k")
            head = gateway.ask("HEAD", path, connection=connection)
            assert head.status == 200 and head.text == "", (path, head)
            description.check_answer("HEAD", path, head)
            if path == "/v1/events":
                assert "Content-Length" not in head.headers, path
                continue
            get = ask(gateway, "GET", path)
            assert head.headers["Content-Type"] == get.headers["Content-Type"], path
            if path not in ("/v1/status", "/v1/locks/k", "/metrics"):
                assert int(head.headers["Content-Length"]) == len(get.text.encode()), path
    connection.close()
    assert gateway.metric("gateway_streams") == 0
    gateway.stop()


def its_health_is_that_of_a_quorum():
    masters = Masters()
    with token_file("0123456789abcdef") as tokens:
        gateway = Gateway(masters, "--token-file", tokens.name)
    until(lambda: ask(gateway, "GET", "/healthz").json == {"status": "ok"}, "it grants locks")
    masters.order("kill", 0)
    masters.order("kill", 1)
    # It was healthy with two masters; the third may not be connected yet.
    detail = "1 of 3 masters grant locks, 2 are needed."
    until(lambda: gateway.ask("GET", "/healthz").json.get("detail") == detail, detail)
    refused(gateway, "GET", "/healthz", None, 503, "no-quorum")
    assert gateway.ask("HEAD", "/healthz").status == 503
    masters.order("restart", 0)
    until(lambda: ask(gateway, "GET", "/healthz").status == 200, "it grants locks again")
    gateway.process.terminate()
    gateway.wait()


def a_lock_of_another_gateway_is_not_called_ended():
    masters = Masters()
    before = Gateway(masters)
    lock = before.acquire("k")
    before.stop()
    assert masters.has("k") >= 2
    gateway = Gateway(masters)
    path = f"/v1/locks/k/{lock['id']}"
    refused(gateway, "POST", path + "/renew", None, 404, "unknown-lock")
    refused(gateway, "DELETE", path, None, 404, "unknown-lock")
    assert ask(gateway, "GET", "/v1/locks/k").json["held"]
    gateway.stop()


def a_lock_that_masters_lost_is_lost():
    masters = Masters()
    gateway = Gateway(masters)
    for end in ("renew", "release"):
        lock = gateway.acquire("k")
        path = f"/v1/locks/k/{lock['id']}"
        masters.delete("k")
        if end == "renew":
            refused(gateway, "POST", path + "/renew", None, 409, "lost")
            until(lambda: gateway.status()["held"] == 0, "its hold ends")
        else:
            refused(gateway, "DELETE", path, None, 409, "lost")
    gateway.stop()


def a_second_renewal_at_once_is_refused():
    masters = Masters()
    gateway = Gateway(masters, timeout="60s")
    lock = gateway.acquire("k")
    path = f"/v1/locks/k/{lock['id']}/renew"
    masters.order_all("stop")
    first = gateway.connect()
    first.request("POST", path)
    until(
        lambda: gateway.ask("POST", path).is_problem(409, "busy"), "the first one is under way"
    )
    refused(gateway, "POST", path, None, 409, "busy")
    masters.order_all("continue")
    first.getresponse().read()
    first.close()
    gateway.stop()


def without_a_quorum_nothing_is_decided():
    masters = Masters()
    gateway = Gateway(masters)
    lock = gateway.acquire("k")
    path = f"/v1/locks/k/{lock['id']}"
    masters.order("kill", 0)
    masters.order("kill", 1)
    problem = refused(gateway, "POST", "/v1/locks/x", None, 503, "no-quorum")
    assert len(problem["nodes"]) == 3 and any(node["detail"] for node in problem["nodes"])
    refused(gateway, "GET", "/v1/locks/k", None, 503, "no-quorum")
    refused(gateway, "POST", path + "/renew", None, 503, "no-quorum")
    refused(gateway, "DELETE", path, None, 503, "no-quorum")
    refused(gateway, "DELETE", path, None, 404, "no-such-lock")
    gateway.stop(code=69)


def masters_that_refuse_the_gateway():
    masters = Masters()
    gateway = Gateway(masters)
    for index in range(3):
        masters.ask(index, "ACL", "SETUSER", "default", "-set")
    problem = refused(gateway, "POST", "/v1/locks/x", None, 502, "no-access")
    assert all("NOPERM" in node["detail"] for node in problem["nodes"] if node["answer"] == "error")
    gateway.stop()


def each_status_of_each_path_has_been_seen():
    """Tests the rest: tokens, hosts, too many pages; then checks that everything was covered."""
    masters = Masters()
    paths = [(path, method) for path, method, _ in description.operations()]
    fill = lambda path: path.replace("{key}", "k").replace("{id}", "0" * 48)
    gateway = Gateway(masters)
    for path, method in paths:
        refused(gateway, method.upper(), fill(path), None, 403, "forbidden-host", {"Host": "evil"})
        if path not in ("/v1/events",):
            ask(gateway, method.upper(), fill(path), b"1" if method != "post" else b"{")
    pages = []
    for _ in range(32):
        pages.append(gateway.dial(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        head = b""
        while b"data: {" not in head:
            head += pages[-1].recv(65536)
        assert b"\r\nContent-Type: text/event-stream\r\n" in head
    description.answers.add(("/v1/events", "get", "200"))
    refused(gateway, "GET", "/v1/events", None, 503, "full")
    for page in pages:
        page.close()
    for path in ("/", "/page.css", "/page.js", "/openapi.json", "/metrics"):
        assert ask(gateway, "GET", path).status == 200
    gateway.stop()
    with token_file("0123456789abcdef") as tokens:
        gateway = Gateway(masters, "--token-file", tokens.name)
    for path, method in paths:
        if path.startswith("/v1") or path == "/metrics":
            refused(gateway, method.upper(), fill(path), None, 401, "unauthorized")
    gateway.stop()
    missing = description.all_answers() - description.answers
    assert not missing, f"never seen: {sorted(missing)}"
    missing = description.all_fields() - description.fields
    assert not missing, f"never seen: {sorted(missing)}"


if __name__ == "__main__":
    run(
        a_lock_is_acquired_renewed_inspected_and_released,
        one_that_waits_gets_the_lock_when_it_is_released,
        readers_share_a_key,
        what_makes_no_sense_is_named,
        what_is_not_there_is_reported,
        head_is_get_without_a_body,
        its_health_is_that_of_a_quorum,
        a_lock_of_another_gateway_is_not_called_ended,
        a_lock_that_masters_lost_is_lost,
        a_second_renewal_at_once_is_refused,
        without_a_quorum_nothing_is_decided,
        masters_that_refuse_the_gateway,
        each_status_of_each_path_has_been_seen,
    )
