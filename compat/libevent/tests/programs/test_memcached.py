"""memcached answers alike on the original and on the drop-in (see compat/tests/programs.py)."""

import os
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from programs import (TIMEOUT_S, UNPRIVILEGED, ProgramTest, eventually, free_port, inspect, main,
                      need, run, server)

KEYS = int(os.environ.get("TAMBOUR_TEST_KEYS", "5000"))
OPERATIONS = int(os.environ.get("TAMBOUR_TEST_REQUESTS", "20000"))


class Client:
    """A connection that compares what arrives with what should."""

    def __init__(self, address: Path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(address))
        self.socket.settimeout(TIMEOUT_S)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reader.close()
        self.socket.close()

    def exchange(self, request: bytes, size: int) -> bytes:
        """Sends a request in one piece while it reads an answer of a known size."""
        sender = threading.Thread(target=self.socket.sendall, args=(request,))
        sender.start()
        answer = self.reader.read(size)
        sender.join()
        return answer


class Memcached(ProgramTest):
    library = "libevent"

    def setUp(self):
        need("memcached")
        super().setUp()

    @contextmanager
    def memcached(self, ours: bool, address: int | Path, *words: object, **options):
        where = (["-l", "127.0.0.1", "-p", address] if isinstance(address, int)
                 else ["-s", address, "-a", "0777"])
        user = ["-u", UNPRIVILEGED] if UNPRIVILEGED else []
        with server(ours, address, "memcached", *where, *user, "-U", "0", *words,
                    **options) as process:
            self.check_library(process.pid, ours)
            yield process

    def test_protocol(self):
        """memccapable verifies both protocols with 54 tests."""
        need("memccapable")

        def scenario(ours: bool) -> list[str]:
            port = free_port()
            with self.memcached(ours, port):
                said = run(False, "memccapable", "-h", "127.0.0.1", "-p", port, "-t", TIMEOUT_S)
            return said.splitlines()

        # At the same time, because most of it is waiting for values to expire.
        with ThreadPoolExecutor() as pool:
            original, lines = pool.map(scenario, (False, True))
        self.assertEqual(lines, original)
        self.assertEqual(sum("[pass]" in line for line in lines), 54)
        self.assertEqual(lines[-1], "All tests passed")

    def test_pipelined_sets(self):
        """Thousands of sets arrive at once; one get names all keys."""
        names = [b"key:%d" % i for i in range(KEYS)]
        values = [b"%d." % i * (i % 200) for i in range(KEYS)]
        sets = b"".join(b"set %s %d 0 %d\r\n%s\r\n" % (name, i, len(value), value)
                        for i, (name, value) in enumerate(zip(names, values)))
        found = b"".join(b"VALUE %s %d %d\r\n%s\r\n" % (name, i, len(value), value)
                         for i, (name, value) in enumerate(zip(names, values))) + b"END\r\n"

        def scenario(ours: bool) -> None:
            address = self.folder / f"socket-{ours}"
            with self.memcached(ours, address), Client(address) as client:
                self.assertEqual(client.exchange(sets, len(b"STORED\r\n") * KEYS),
                                 b"STORED\r\n" * KEYS)
                self.assertEqual(client.exchange(b"get %s\r\n" % b" ".join(names), len(found)),
                                 found)

        self.assert_same_on_both(scenario)

    def test_load(self):
        """memcaslap misses no key that it has set."""
        need("memcaslap")

        def scenario(ours: bool) -> list[str]:
            port = free_port()
            with self.memcached(ours, port, "-t", 2):
                said = run(False, "memcaslap", "-s", f"127.0.0.1:{port}", "-T", 2, "-c", 32, "-x",
                           OPERATIONS, "-v", "0.2", "-d", 10)
            return re.findall(r"^(?:cmd_\w+|get_misses|verify_\w+): \d+$", said, re.MULTILINE)

        counts = self.assert_same_on_both(scenario)
        self.assertIn("get_misses: 0", counts)
        self.assertIn("verify_misses: 0", counts)
        self.assertIn("verify_failed: 0", counts)

    def test_limit_of_connections(self):
        """memcached refuses connections beyond its limit, until others were closed."""

        def ask(client: Client) -> bytes:
            # A refused connection is closed, perhaps before the request is sent.
            try:
                client.socket.sendall(b"mn\r\n")
            except BrokenPipeError:
                pass
            return client.reader.readline()

        def scenario(ours: bool) -> None:
            address = self.folder / f"socket-{ours}"
            with self.memcached(ours, address, "-c", 64, "-t", 2):

                def accepted() -> bool:
                    with Client(address) as client:
                        return ask(client) == b"MN\r\n"

                with ExitStack() as stack:
                    clients = [stack.enter_context(Client(address)) for _ in range(100)]
                    answers = [ask(client) for client in clients]
                    self.assertEqual(set(answers[:20]), {b"MN\r\n"}, answers)
                    self.assertIn(b"ERROR Too many open connections\r\n", answers)
                eventually(accepted, "memcached accepts connections again")

        self.assert_same_on_both(scenario)

    def test_inspected(self):
        """Loops, events, callbacks and connections of memcached, which knows nothing of it."""
        address, debug = self.folder / "socket", self.folder / "debug.%p"
        with self.memcached(True, address, "-t", 2,
                            env={"TAMBOUR_INSPECT": f"unix:{debug}"}) as process, \
                Client(address) as client:
            debug = Path(str(debug).replace("%p", str(process.pid)))
            for _ in range(100):
                self.assertEqual(client.exchange(b"set planted 0 0 6\r\nsecret\r\nmn\r\n", 12),
                                 b"STORED\r\nMN\r\n")
            loops = inspect(debug, "/loops")
            self.assertEqual(loops["title"], "memcached")
            # The main thread and two workers, at least.
            self.assertGreaterEqual(len(loops["loops"]), 3)
            self.assertTrue(all("references" in loop for loop in loops["loops"]), loops)
            self.assertGreater(sum(loop["iterations"] for loop in loops["loops"]), 0)
            events = inspect(debug, "/events?sort=fd")["events"]
            self.assertIn("timer", {event["kind"] for event in events})
            readers = [event for event in events if event["awaits"] == "read"]
            self.assertGreaterEqual(len(readers), 4, events)
            self.assertTrue(all(event["function"].startswith("memcached+0x") for event in readers
                                if event["kind"] == "io"), readers)
            self.assertEqual(inspect(debug, "/events?q=nothing+has+this")["matching"], 0)
            calls = {row["place"]: row["calls"]
                     for row in inspect(debug, "/callbacks")["callbacks"]}
            self.assertGreaterEqual(max(calls.values()), 1, calls)
            sockets = inspect(debug, f"/connections?q={address}")["connections"]
            self.assertIn("listen", {row["state"] for row in sockets})
            self.assertTrue(any(row["loop"].startswith("libevent/") and row["awaits"] == "read"
                                and row["state"] != "listen" for row in sockets), sockets)
            pages = [inspect(debug, page) for page in ("/", "/evhttp", "/health", "/ready")]
            self.assertNotIn("planted", f"{events}{calls}{sockets}{pages}")
        # The file ends with the program.
        self.assertFalse(debug.exists())

    def test_blocked_callback(self):
        """The inspector names the callback that blocks a base, which answers nothing itself."""
        debug = self.folder / "debug"
        # A timer whose callback is usleep(3), which gets -1 as its time.
        program = ("import ctypes\n"
                   "e, c = ctypes.CDLL('libevent-2.1.so.7'), ctypes.CDLL(None)\n"
                   "for f in (e.event_base_new, e.event_new): f.restype = ctypes.c_void_p\n"
                   "base = ctypes.c_void_p(e.event_base_new())\n"
                   "timer = e.event_new(base, -1, 0, c.usleep, None)\n"
                   "e.event_active(ctypes.c_void_p(timer), 1, 0)\n"
                   "e.event_base_dispatch(base)\n")
        with server(True, debug, "/usr/bin/python3", "-c", program,
                    env={"TAMBOUR_INSPECT": f"unix:{debug}"}):

            def blocked() -> dict | None:
                loop = inspect(debug, "/loops")["loops"][0]
                return loop if loop["running"] else None

            loop = eventually(blocked, "the callback runs")
            self.assertIn("usleep", loop["running"])
            self.assertEqual(inspect(debug, "/events")["silent_loops"], ["libevent/0"])

    def test_inspected_child(self):
        """After fork(2), the inspector starts again when the child reopens its base."""
        # PR_SET_PDEATHSIG: the child ends with its parent.
        program = ("import ctypes, os\n"
                   "e, c = ctypes.CDLL('libevent-2.1.so.7'), ctypes.CDLL(None)\n"
                   "for f in (e.event_base_new, e.event_new): f.restype = ctypes.c_void_p\n"
                   "base = ctypes.c_void_p(e.event_base_new())\n"
                   "timer = ctypes.c_void_p(e.event_new(base, -1, 0x10, c.getppid, None))\n"
                   "e.event_add(timer, (ctypes.c_long * 2)(0, 10000))\n"
                   "if os.fork() == 0:\n"
                   "    c.prctl(1, 15)\n"
                   "    e.event_reinit(base)\n"
                   "    os.symlink(f'debug.{os.getpid()}', 'child')\n"
                   "    e.event_base_dispatch(base)\n"
                   "os.wait()\n")
        child = self.folder / "child"
        with server(True, child, "/usr/bin/python3", "-c", program, cwd=self.folder,
                    env={"TAMBOUR_INSPECT": f"unix:{self.folder}/debug.%p"}):

            def called() -> list:
                return inspect(child, "/callbacks")["callbacks"]

            self.assertIn("getppid", eventually(called, "the timer expires")[0]["place"])
            self.assertEqual(inspect(child, "/events")["silent_loops"], [])
            self.assertEqual(len(list(self.folder.glob("debug.*"))), 2)

    def test_signals(self):
        """memcached ends orderly after each signal."""

        def scenario(ours: bool) -> list[int]:
            statuses = []
            for name in ("SIGTERM", "SIGINT", "SIGUSR1"):
                address = self.folder / f"socket-{ours}-{name}"
                with self.memcached(ours, address) as process, Client(address) as client:
                    self.assertEqual(client.exchange(b"mn\r\n", 4), b"MN\r\n")
                    subprocess.run(["kill", f"-{name}", str(process.pid)], check=True)
                    statuses.append(process.wait(TIMEOUT_S))
            return statuses

        self.assertEqual(self.assert_same_on_both(scenario), [0, 0, 0])


if __name__ == "__main__":
    main()
