"""A client of http2_peers_test: httpx, and h2 for what httpx does not offer.

    http2_peer.py PORT clear|tls    prints "ok"
"""
import asyncio
import os
import random
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events
import httpx

port, uses_tls = int(sys.argv[1]), sys.argv[2] == "tls"
origin = f"{'https' if uses_tls else 'http'}://localhost:{port}"


async def use_httpx():
    async with httpx.AsyncClient(http1=False, http2=True, verify=False, timeout=60) as client:
        response = await client.get(origin + "/version")
        assert (response.http_version, response.text) == ("HTTP/2", "2"), response
        found = await asyncio.gather(*(client.get(origin + "/slow") for _ in range(50)))
        assert all(response.text == "hello" for response in found)
        content = os.urandom(1_000_000)
        response = await client.post(origin + "/", content=content)
        assert response.content == content
        rng = random.Random(1)
        for _ in range(50):
            sent = {f"x-{i}": "v" * rng.randrange(60) + str(rng.randrange(5)) for i in range(9)}
            response = await client.get(origin + "/fields", headers=sent)
            assert all(response.headers[name] == value for name, value in sent.items())


class Connection:
    """A connection of h2, on which one response after the other is read."""

    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        if uses_tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.http.initiate_connection()

    def send(self):
        self.socket.sendall(self.http.data_to_send())

    def request(self, method, path, ends=True):
        stream = self.http.get_next_available_stream_id()
        self.http.send_headers(stream, [(":method", method), (":path", path),
                                        (":scheme", origin.split(":")[0]),
                                        (":authority", "localhost")], end_stream=ends)
        self.send()
        return stream

    def response(self, stream):
        """The events of the response, and its body."""
        events, body = [], b""
        while not any(isinstance(event, h2.events.StreamEnded) for event in events):
            for event in self.http.receive_data(self.socket.recv(65536)):
                assert not isinstance(event, h2.events.ConnectionTerminated), event
                if getattr(event, "stream_id", None) != stream:
                    continue
                events.append(event)
                if isinstance(event, h2.events.DataReceived):
                    body += event.data
                    self.http.acknowledge_received_data(event.flow_controlled_length, stream)
            self.send()
        return events, body

    def get(self, path):
        return self.response(self.request("GET", path))


def fields_of(events, kind):
    return [field for event in events if isinstance(event, kind) for field in event.headers]


def use_h2():
    connection = Connection()
    events, body = connection.get("/early")
    early = fields_of(events, h2.events.InformationalResponseReceived)
    assert early[:2] == [(":status", "103"), ("link", "</style.css>; rel=preload")], early
    assert body == b"late"

    stream = connection.request("POST", "/", ends=False)
    connection.http.send_data(stream, b"body")
    connection.http.send_headers(stream, [("x-sum", "4")], end_stream=True)
    connection.send()
    events, body = connection.response(stream)
    assert body == b"body"
    assert ("x-sum", "4") in fields_of(events, h2.events.TrailersReceived), events

    before = connection.get("/cancelled")[1]
    stream = connection.request("GET", "/wait")
    connection.http.reset_stream(stream, 8)
    while connection.get("/cancelled")[1] == before:
        pass


asyncio.run(use_httpx())
use_h2()
print("ok")
