"""10,000 requests without an error, from clients that keep connections and clients that do not."""

import os
import threading

from rig import LONG_MS, Gateway, Masters, run, until

REQUESTS = int(os.environ.get("REDLOCK_TEST_CYCLES", "10000"))
CLIENTS = 16


def share(total, number):
    """Returns the share of a client in a total."""
    return total // CLIENTS + (number < total % CLIENTS)


def run_clients(serve):
    """Runs serve(number) in one thread per client; none may fail."""
    failures = []

    def guarded(number):
        try:
            serve(number)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]


def expect(answer, status):
    assert answer.status == status, answer
    return answer.json


def use_a_lock(gateway, key, connection):
    """Acquires, renews, inspects and releases: four requests."""
    terms = {"ttl_ms": LONG_MS}
    lock = expect(gateway.ask("POST", f"/v1/locks/{key}", terms, connection=connection), 201)
    path = f"/v1/locks/{key}/{lock['id']}"
    expect(gateway.ask("POST", path + "/renew", connection=connection), 200)
    assert expect(gateway.ask("GET", f"/v1/locks/{key}", connection=connection), 200)["held"]
    expect(gateway.ask("DELETE", path, connection=connection), 204)
    return lock


def ten_thousand_requests():
    masters = Masters()
    gateway = Gateway(masters)

    def serve(number):
        connection = gateway.connect() if number % 4 else None
        for turn in range(share(REQUESTS // 4, number)):
            use_a_lock(gateway, f"load:{number}:{turn}", connection)
        if connection:
            connection.close()

    run_clients(serve)
    answers = [
        line.rsplit(" ", 1)
        for line in gateway.ask("GET", "/metrics").text.splitlines()
        if line.startswith("redlock_gateway_answers_total")
    ]
    counts = {name.split('"')[1]: int(count) for name, count in answers}
    assert counts == {
        route: REQUESTS // 4 for route in ("acquire", "renew", "inspect", "release")
    }, counts
    stats = gateway.status()
    assert stats["held"] == 0 and stats["lost"] == 0, stats
    assert gateway.metric("gateway_locks_returned_total") == 0
    gateway.stop()
    assert masters.ask(0, "KEYS", "load:*") == b"*0\r\n"


def many_that_want_one_key():
    masters = Masters()
    gateways = [Gateway(masters), Gateway(masters)]
    holders = []
    inside = threading.Lock()
    fences = []

    def serve(number):
        gateway = gateways[number % 2]
        connection = gateway.connect()
        for _ in range(max(REQUESTS // 1000, 1)):
            fields = {"wait_ms": 600000, "ttl_ms": LONG_MS, "fenced": True}
            lock = expect(gateway.ask("POST", "/v1/locks/k", fields, connection=connection), 201)
            with inside:
                holders.append(number)
                assert len(holders) == 1, holders
                fences.append(lock["fence"])
            with inside:
                holders.remove(number)
            path = f"/v1/locks/k/{lock['id']}"
            expect(gateway.ask("DELETE", path, connection=connection), 204)
        connection.close()

    run_clients(serve)
    assert fences == sorted(set(fences)), "a fence did not grow"
    assert sum(gateway.status()["handovers"] for gateway in gateways) > 0
    until(lambda: masters.has("k") == 0, "the key is free")
    for gateway in gateways:
        gateway.stop()


if __name__ == "__main__":
    run(ten_thousand_requests, many_that_want_one_key)
