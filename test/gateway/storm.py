"""Clients that break off at any instant, masters that stop, and a gateway that ends meanwhile."""

import os
import random
import threading

from rig import Gateway, Masters, run, until

CLIENTS = 12
TURNS = min(int(os.environ.get("REDLOCK_TEST_CYCLES", "60")), 60)


def request(method, path, body=""):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


class Client:
    """Sends requests one after the other, reads some answers, and closes at a random instant."""

    def __init__(self, gateway, seed):
        self.gateway = gateway
        self.chance = random.Random(seed)
        self.thread = threading.Thread(target=self.run)

    def draw(self):
        key = self.chance.choice(("a", "b", "c"))
        mode = self.chance.choice(("exclusive", "reader", "writer"))
        body = f'{{"wait_ms": {self.chance.choice((0, 5000))}, "ttl_ms": 1000, "mode": "{mode}"}}'
        return self.chance.choice(
            (
                request("POST", f"/v1/locks/{key}", body),
                request("POST", f"/v1/locks/{key}", body),
                request("GET", f"/v1/locks/{key}"),
                request("GET", "/v1/events"),
                request("GET", "/v1/status"),
                request("DELETE", f"/v1/locks/{key}/{'0' * 48}"),
                b"\0",
            )
        )

    def run(self):
        for _ in range(TURNS):
            try:
                with self.gateway.dial() as client:
                    client.settimeout(self.chance.random() / 50 + 0.001)
                    for _ in range(self.chance.randrange(1, 5)):
                        text = self.draw()
                        client.sendall(text[: self.chance.choice((len(text), 30))])
                        if self.chance.random() < 0.7:
                            self.use(client.recv(65536))
            except OSError:
                pass

    def use(self, answer):
        """Now and then renews or releases the lock of an answer, on another connection."""
        if b"\r\nLocation: " not in answer or self.chance.random() < 0.3:
            return
        path = answer.split(b"\r\nLocation: ")[1].split(b"\r\n")[0].decode()
        with self.gateway.dial() as client:
            client.settimeout(self.chance.random() / 50 + 0.001)
            client.sendall(request("POST", path + "/renew") + request("DELETE", path))
            if self.chance.random() < 0.5:
                client.recv(65536)


def begin_storm(gateway, seed):
    clients = [Client(gateway, seed * 1000 + number) for number in range(CLIENTS)]
    for client in clients:
        client.thread.start()
    return clients


def end_storm(clients):
    for client in clients:
        client.thread.join()


def clients_that_break_leave_nothing():
    masters = Masters()
    gateway = Gateway(masters, timeout="200ms")
    clients = begin_storm(gateway, 1)
    for turn in range(6):
        index = turn % 3
        masters.order("stop", index)
        gateway.ask("GET", "/v1/status")
        masters.order("continue", index)
        masters.order("kill", index)
        gateway.ask("GET", "/v1/status")
        masters.order("restart", index)
    end_storm(clients)
    until(lambda: gateway.status()["held"] == 0, "all locks have ended")
    until(lambda: gateway.status()["waiting"] == 0, "no request waits")
    until(lambda: gateway.metric("gateway_streams") == 0, "no page is told")
    until(lambda: gateway.metric("gateway_connections") == 1, "no connection is left")
    gateway.release(gateway.acquire("a", wait_ms=60000))
    until(lambda: gateway.total("node_pending_releases") == 0, "the restarted masters know of all")
    gateway.stop()


def an_end_in_the_middle_is_an_end():
    for seed in range(4):
        masters = Masters()
        gateway = Gateway(masters, "--drain", "50m")
        clients = begin_storm(gateway, 10 + seed)
        until(lambda: gateway.metric("gateway_requests_canceled_total") > seed, "it has begun")
        gateway.stop()
        end_storm(clients)
        for key in "abc":
            assert masters.has(key) == 0, key


if __name__ == "__main__":
    run(clients_that_break_leave_nothing, an_end_in_the_middle_is_an_end)
