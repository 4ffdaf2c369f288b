"""transmission-daemon answers alike on the original and on the drop-in.

See compat/tests/programs.py.

Its interface is a server of evhttp: files of a web page, and calls in JSON.
"""

import base64
import hashlib
import http.client
import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from programs import TIMEOUT_S, ProgramTest, free_port, inspect, main, need, server

SESSION = "X-Transmission-Session-Id"
CALLS = "/transmission/rpc"


def torrent(name: bytes, content: bytes) -> bytes:
    """The description of a file (BEP 3)."""
    pieces = hashlib.sha1(content).digest()
    return (b"d4:infod6:lengthi%de4:name%d:%s12:piece lengthi65536e6:pieces20:%s7:privatei1eee" %
            (len(content), len(name), name, pieces))


class Transmission(ProgramTest):
    library = "libevent"

    def setUp(self):
        need("transmission-daemon")
        super().setUp()

    @contextmanager
    def daemon(self, ours: bool, **options):
        """Runs transmission-daemon, and yields a connection to it."""
        port = free_port()
        folder = self.folder / f"daemon-{ours}"
        downloads = self.folder / "downloads"
        for each in (folder, downloads):
            each.mkdir(exist_ok=True)
        with server(ours, port, "transmission-daemon", "--foreground", "--config-dir", folder,
                    "--download-dir", downloads, "--port", port, "--peerport", free_port(),
                    "--rpc-bind-address", "127.0.0.1", "--allowed", "127.0.0.1", "--no-auth",
                    "--no-dht", "--no-lpd", "--no-portmap", "--no-utp", **options) as process:
            self.check_library(process.pid, ours)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
            yield connection
            connection.close()

    def ask(self, connection, method: str, path: str, body: bytes | None = None, **fields: str):
        """Returns status, fields that do not change, and body."""
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in fields.items()})
        response = connection.getresponse()
        content = response.read()
        known = ("Content-Type", "Content-Length", "Content-Encoding", "Location", "Connection")
        names = [(name, response.headers[name]) for name in known if name in response.headers]
        return response.status, names, content, response.headers.get(SESSION, "")

    def test_files(self):
        """The web page: redirects, files, compressed ones, and files that do not exist."""

        def scenario(ours: bool) -> list:
            said = []
            with self.daemon(ours) as connection:
                for path in ("/", "/transmission/web/", "/transmission/web/index.html",
                             "/transmission/web/style/transmission/common.css",
                             "/transmission/web/none", "/transmission/web/../../etc/passwd",
                             "/elsewhere"):
                    for fields in ({}, {"Accept_Encoding": "gzip"}):
                        status, names, content, _ = self.ask(connection, "GET", path, **fields)
                        content = re.sub(rb"127\.0\.0\.1:[0-9]+", b"HOST", content)
                        said.append((path, status, [n for n in names if n[0] != "Content-Length"],
                                     hashlib.sha1(content).hexdigest()))
            return said

        self.assert_same_on_both(scenario)

    def test_calls(self):
        """Calls on one connection: a session, a torrent of 200 added, examined and removed."""

        def scenario(ours: bool) -> list:
            said = []
            with self.daemon(ours) as connection:
                status, _, _, session = self.ask(connection, "POST", CALLS, b"{}")
                said.append((status, len(session)))

                def call(method: str, **arguments):
                    body = json.dumps({"method": method, "arguments": arguments}).encode()
                    status, _, content, _ = self.ask(connection, "POST", CALLS, body,
                                                     **{SESSION.replace("-", "_"): session})
                    answer = json.loads(content)
                    said.append((method, status, answer["result"]))
                    return answer["arguments"]

                call("session-set", **{"speed-limit-down": 77, "speed-limit-down-enabled": True})
                said.append(call("session-get")["speed-limit-down"])
                for i in range(200):
                    described = torrent(b"file-%d" % i, b"content of %d" % i)
                    call("torrent-add", paused=True,
                         metainfo=base64.b64encode(described).decode())
                fields = ["name", "totalSize", "hashString", "isPrivate"]
                torrents = call("torrent-get", fields=fields)["torrents"]
                said.append(sorted(json.dumps(each, sort_keys=True) for each in torrents))
                call("torrent-remove", ids=[int(i) for i in range(1, 101)])
                said.append(len(call("torrent-get", fields=["id"])["torrents"]))
                call("no-such-method")
            return said

        result = self.assert_same_on_both(scenario)
        self.assertEqual(result[0][0], 409)
        self.assertIn(100, result)

    def test_inspected(self):
        """The inspector shows the connection of evhttp, without what was sent on it."""
        debug = self.folder / "debug"
        with self.daemon(True, env={"TAMBOUR_INSPECT": f"unix:{debug}"}) as connection:
            status, _, _, _ = self.ask(connection, "GET", "/transmission/web/?token=planted")
            self.assertEqual(status, 200)
            connections = inspect(debug, "/evhttp")["connections"]
            self.assertEqual([(row["side"], row["state"], row["peer"].split(":")[0])
                              for row in connections],
                             [("server", "reading head", "127.0.0.1")])
            kinds = {row["kind"] for row in inspect(debug, "/events?limit=500")["events"]}
            self.assertGreaterEqual(kinds, {"bufferevent", "listener", "timer"})
            self.assertNotIn("planted", str(connections))

    def test_refused(self):
        """Requests that the program or evhttp refuses."""

        def scenario(ours: bool) -> list:
            said = []
            with self.daemon(ours) as connection:
                for method, path, body in (("GET", CALLS, None), ("PUT", CALLS, b"x"),
                                           ("DELETE", "/transmission/web/", None),
                                           ("OPTIONS", CALLS, None), ("NONSENSE", CALLS, None),
                                           ("POST", "/transmission/upload", b"x" * 100000)):
                    status, names, _, _ = self.ask(connection, method, path, body)
                    said.append((method, status, names))
            return said

        self.assert_same_on_both(scenario)


if __name__ == "__main__":
    main()
