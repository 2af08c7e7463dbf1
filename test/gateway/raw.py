"""Requests as bytes, good and broken."""

import socket
import struct

from rig import read_answers

HEAD = b"Host: localhost\r\n"


def is_served(gateway):
    """Asserts that a good client gets what it asks for."""
    gateway.release(gateway.acquire("good"))


def status_of(text):
    return int(text.split(b" ", 2)[1]) if text.startswith(b"HTTP/1.") else 0


def exchange(gateway, text, half_closes=True):
    """Sends bytes, and returns all bytes that are received until the connection ends."""
    with gateway.dial() as client:
        try:
            client.sendall(text)
            if half_closes:
                client.shutdown(socket.SHUT_WR)
        except OSError:  # the gateway has closed it
            pass
        return read_answers(client)


def post(key, body="", more=b""):
    return (
        f"POST /v1/locks/{key} HTTP/1.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n".encode()
        + HEAD
        + more
        + b"\r\n"
        + body.encode()
    )


def reset(client):
    """Closes the connection by a reset."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
