"""Locks that last for their TTL, tokens and addresses, and the end of a gateway."""

import http.client
import os
import subprocess
import threading
import time

from rig import LONG_MS, Gateway, Masters, read_answers, run, token_file, until


def acquire_short(gateway, key):
    """Acquires a lock with a short TTL; tries again if a busy machine needs longer than that."""
    return until(
        lambda: (gateway.ask("POST", f"/v1/locks/{key}", {"ttl_ms": 1000}).json or {}).get("id"),
        "a lock is acquired within its TTL",
    )


def a_lock_lasts_for_its_ttl_without_a_renewal():
    masters = Masters()
    gateway = Gateway(masters)
    lock_id = acquire_short(gateway, "k")
    until(lambda: gateway.metric("gateway_locks_lapsed_total") == 1, "it lapses")
    answer = gateway.ask("POST", f"/v1/locks/k/{lock_id}/renew")
    assert answer.is_problem(404, "no-such-lock"), answer
    until(lambda: gateway.status()["held"] == 0, "its hold ends")
    until(lambda: masters.has("k") == 0, "the key is free")
    gateway.stop()


def a_renewal_counts_from_its_call():
    gateway = Gateway(Masters())
    path = None

    def is_renewed():
        nonlocal path
        path = f"/v1/locks/renewed/{acquire_short(gateway, 'renewed')}"
        return gateway.ask("POST", path + "/renew", {"ttl_ms": LONG_MS}).status == 200

    until(is_renewed, "a lock is renewed within its TTL")
    before = gateway.metric("gateway_locks_lapsed_total")
    acquire_short(gateway, "other")
    until(lambda: gateway.metric("gateway_locks_lapsed_total") > before, "another one lapses")
    assert [lock["key"] for lock in gateway.status()["locks"]] == ["renewed"]
    assert gateway.ask("POST", path + "/renew").json["ttl_ms"] == LONG_MS
    gateway.stop()


def a_lock_goes_on_while_its_gateway_closes():
    """The holder was promised its time, and cannot be notified."""
    masters = Masters()
    first, second = Gateway(masters, "--drain", "50m"), Gateway(masters)
    lock = first.acquire("k", fenced=True)
    answers = {}

    def wait_at(gateway, name):
        answers[name] = gateway.ask(
            "POST", "/v1/locks/k", {"wait_ms": 600000, "fenced": True, "ttl_ms": LONG_MS}
        )

    waiting = [
        threading.Thread(target=wait_at, args=(first, "first")),
        threading.Thread(target=wait_at, args=(second, "second")),
    ]
    for thread in waiting:
        thread.start()
    until(lambda: first.status()["waiting"] == 1 == second.status()["waiting"], "both wait")
    first.process.terminate()
    waiting[0].join()
    assert answers["first"].is_problem(503, "closing"), answers
    assert first.ask("POST", "/v1/locks/other").is_problem(503, "closing")
    assert first.ask("POST", f"/v1/locks/k/{lock['id']}/renew").status == 200
    for path in ("/v1/events", "/healthz"):
        assert first.ask("GET", path).is_problem(503, "closing"), path
    assert first.status()["held"] == 1 and first.ask("GET", "/v1/locks/k").json["held"]
    assert masters.has("k") >= 3 and second.status()["waiting"] == 1
    first.release(lock)
    first.wait()
    waiting[1].join()
    assert answers["second"].status == 201, answers
    assert answers["second"].json["fence"] > lock["fence"]
    second.release(answers["second"].json)
    second.stop()
    assert masters.has("k") == 0


def nobody_has_a_lock_of_a_closing_gateway_before_its_time():
    masters = Masters()
    for drain in ("50m", "0s"):
        first, second = Gateway(masters, "--drain", drain), Gateway(masters)
        began = time.monotonic()
        lock = first.acquire("k", ttl_ms=4000)
        first.process.terminate()
        answer = second.ask("POST", "/v1/locks/k", {"wait_ms": 600000, "ttl_ms": LONG_MS})
        assert time.monotonic() - began >= lock["validity_ms"] / 1000, (drain, lock)
        first.wait()
        second.release(answer.json)
        second.stop()


def renewals_do_not_hold_a_gateway_that_closes():
    """A holder that never ends keeps its lock, but delays the gateway's end only for --drain."""
    masters = Masters()
    gateway = Gateway(masters, "--drain", "4s")
    path = f"/v1/locks/k/{gateway.acquire('k')['id']}/renew"
    gateway.process.terminate()
    connection, renewed = gateway.connect(), 0
    try:
        while gateway.ask("POST", path, connection=connection).status == 200:
            renewed += 1
    except (OSError, http.client.HTTPException):
        pass
    connection.close()
    gateway.wait()
    assert renewed > 0 and "locks left to their TTL: 1" in gateway.said(), gateway.said()
    assert masters.has("k") >= 2


def a_gateway_without_time_leaves_its_locks():
    masters = Masters()
    gateway = Gateway(masters, "--drain", "0s")
    gateway.acquire("k")
    gateway.stop()
    assert "locks left to their TTL: 1" in gateway.said(), gateway.said()
    assert masters.has("k") >= 3


def an_end_closes_pages_and_slow_clients():
    gateway = Gateway(Masters())
    page = gateway.dial(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    slow = gateway.dial(b"POST /v1/locks/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r")
    until(lambda: gateway.metric("gateway_streams") == 1, "the page is told")
    gateway.stop()
    assert read_answers(page).endswith(b"0\r\n\r\n")
    assert read_answers(slow) == b""
    page.close()
    slow.close()


def an_end_without_masters_says_what_is_left():
    masters = Masters()
    gateway = Gateway(masters)
    lock = gateway.acquire("k")
    masters.order_all("kill")
    answer = gateway.ask("DELETE", f"/v1/locks/k/{lock['id']}")
    assert answer.is_problem(503, "no-quorum"), answer
    gateway.process.terminate()
    gateway.wait(code=69)
    assert "3 releases were not confirmed" in gateway.said()


def a_token_is_asked_for():
    good, other = "0123456789abcdef", "fedcba9876543210"
    with token_file(good, other) as file:
        gateway = Gateway(Masters(), "--token-file", file.name)
    for authorization, status in (
        (f"Bearer {good}", 200),
        (f"bearer {other}", 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        (f"Bearer {good}x", 401),
        (f"Bearer {good[:-1]}", 401),
        (f"Bearer  {good}", 401),
        (f"Basic {good}", 401),
        (good, 401),
    ):
        headers = {"Host": "anything"}
        if authorization is not None:
            headers["Authorization"] = authorization
        for path in ("/v1/status", "/metrics", "/v1/locks/k"):
            answer = gateway.ask("GET", path, headers=headers)
            assert answer.status == status, (authorization, path, answer)
            assert (status == 401) == ("WWW-Authenticate" in answer.headers)
        assert gateway.ask("GET", "/", headers=headers).status == 200
    gateway.process.terminate()
    gateway.wait()


def refuses_to_begin(masters, *arguments):
    """Returns the gateway's output."""
    ended = subprocess.run(
        [os.environ["GATEWAY"], *arguments],
        env=dict(os.environ, REDLOCK_NODES=",".join(masters.uris)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 64, ended
    return ended.stderr


def a_mistaken_command_line_is_refused():
    masters = Masters(1)
    for arguments, word in (
        (["--listen", "0.0.0.0:0"], "--allow-anyone"),
        (["--listen", "[::]:0"], "--allow-anyone"),
        (["--listen", "localhost:0"], "numeric"),
        (["--listen", "127.0.0.1"], "ADDRESS:PORT"),
        (["--listen", "127.0.0.1:65536"], "ADDRESS:PORT"),
        (["--max-waiters", "1000"], "--max-connections"),
        (["--max-locks", "0"], "--max-locks"),
        (["--max-locks", "-1"], "--max-locks"),
        (["--max-ttl", "1ms"], "--max-ttl"),
        (["-n", "http://localhost"], "node 1:"),
        (["--node-timeout", "5"], "--node-timeout"),
        (["--owner", "a b"], "--owner:"),
        (["--idle", "5"], "--idle"),
        (["--idle", "1ms"], "--idle"),
        (["--max-wait", "x"], "--max-wait"),
        (["--drain", "-1s"], "--drain"),
        (["--host", ""], "--host"),
        (["--host", "gateway.example:80"], "--host"),
        (["--host", "[::1]:80"], "--host"),
        (["more"], "more"),
        (["--what"], "--help"),
    ):
        assert word in refuses_to_begin(masters, *arguments), arguments
    with token_file("short") as file:
        said = refuses_to_begin(masters, "--token-file", file.name)
        assert "line 3" in said and "short" not in said, said
    with token_file("0123456789abcdef\0more") as file:
        assert "line 3" in refuses_to_begin(masters, "--token-file", file.name)
    with token_file("# " + "x" * 600 + "0123456789abcdef") as file:
        assert "no token" in refuses_to_begin(masters, "--token-file", file.name)
    with token_file() as file:
        assert "no token" in refuses_to_begin(masters, "--token-file", file.name)


def with_a_token_or_leave_it_listens_to_all():
    masters = Masters(1)
    with token_file("0123456789abcdef") as file:
        for arguments, host, status in (
            (["--token-file", file.name], "anything", 401),
            (["--allow-anyone"], "anything", 403),
            (["--allow-anyone", "--host", "gateway.example"], "GATEWAY.example:80", 200),
        ):
            gateway = Gateway(masters, "--listen", "0.0.0.0:0", *arguments)
            answer = gateway.ask("GET", "/v1/status", headers={"Host": host})
            assert answer.status == status, (arguments, answer)
            gateway.process.terminate()
            gateway.wait()


if __name__ == "__main__":
    run(
        a_lock_lasts_for_its_ttl_without_a_renewal,
        a_renewal_counts_from_its_call,
        a_lock_goes_on_while_its_gateway_closes,
        nobody_has_a_lock_of_a_closing_gateway_before_its_time,
        renewals_do_not_hold_a_gateway_that_closes,
        a_gateway_without_time_leaves_its_locks,
        an_end_closes_pages_and_slow_clients,
        an_end_without_masters_says_what_is_left,
        a_token_is_asked_for,
        a_mistaken_command_line_is_refused,
        with_a_token_or_leave_it_listens_to_all,
    )
