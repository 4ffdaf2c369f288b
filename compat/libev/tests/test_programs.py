"""Existing programs produce the same output on the original and on the drop-in.

See compat/tests/programs.py for the arguments.
"""

import os
import subprocess
import sys
import unittest
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from programs import (ENV, LIBRARIES, TIMEOUT_S, ProgramTest, command, free_port, inspect, main,
                      need, server)

HERE = Path(__file__).resolve().parent
REQUESTS = int(os.environ.get("TAMBOUR_TEST_REQUESTS", "100000"))


def load(ours: bool, url: str) -> list[str]:
    """Runs h2load and returns its counters, without the timings."""
    done = subprocess.run(command(ours, "h2load", "-n", REQUESTS, "-c", 20, "-m", 20, url), env=ENV,
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return [line for line in done.stdout.splitlines()
            if line.startswith(("requests:", "status codes:", "Application protocol"))]


class Programs(ProgramTest):
    library = "libev"

    def setUp(self):
        super().setUp()
        (self.folder / "page").write_text("It works.\n" * 20)

    def assert_same_on_both(self, scenario) -> None:
        self.assertIn(f"{REQUESTS} succeeded", " ".join(super().assert_same_on_both(scenario)))

    def test_http2(self):
        """h2load connects to nghttpd through nghttpx, without TLS."""
        need("h2load", "nghttpd", "nghttpx")

        def scenario(ours: bool) -> list[str]:
            back, front = free_port(), free_port()
            with ExitStack() as stack:
                nghttpd = stack.enter_context(
                    server(ours, back, "nghttpd", "--no-tls", "-a", "127.0.0.1",
                           "-d", self.folder, back))
                nghttpx = stack.enter_context(
                    server(ours, front, "nghttpx", f"--frontend=127.0.0.1,{front};no-tls",
                           f"--backend=127.0.0.1,{back};;proto=h2", "--single-process",
                           "--conf=/dev/null", "--errorlog-file=/dev/null"))
                self.check_library(nghttpd.pid, ours)
                self.check_library(nghttpx.pid, ours)
                return load(ours, f"http://127.0.0.1:{front}/page")

        self.assert_same_on_both(scenario)

    def test_http2_over_tls(self):
        """h2load connects to nghttpd through nghttpx, with TLS."""
        need("h2load", "nghttpd", "nghttpx")
        key, certificate = self.certificate()

        def scenario(ours: bool) -> list[str]:
            back, front = free_port(), free_port()
            with ExitStack() as stack:
                stack.enter_context(
                    server(ours, back, "nghttpd", "-a", "127.0.0.1", "-d", self.folder,
                           back, key, certificate))
                stack.enter_context(
                    server(ours, front, "nghttpx", f"--frontend=127.0.0.1,{front}",
                           f"--backend=127.0.0.1,{back};;proto=h2;tls", "--insecure",
                           "--single-process", "--conf=/dev/null", "--errorlog-file=/dev/null",
                           key, certificate))
                return load(ours, f"https://127.0.0.1:{front}/page")

        self.assert_same_on_both(scenario)

    def test_hitch(self):
        """hitch terminates TLS in front of nghttpd."""
        need("h2load", "nghttpd", "hitch")
        key, certificate = self.certificate()
        pem = self.folder / "both.pem"
        pem.write_text(key.read_text() + certificate.read_text())

        def scenario(ours: bool) -> list[str]:
            back, front = free_port(), free_port()
            with ExitStack() as stack:
                stack.enter_context(server(ours, back, "nghttpd", "--no-tls", "-a", "127.0.0.1",
                                           "-d", self.folder, back))
                hitch = stack.enter_context(
                    server(ours, front, "hitch", f"--backend=[127.0.0.1]:{back}",
                           f"--frontend=[127.0.0.1]:{front}", "--alpn-protos=h2", "--workers=1",
                           *(["--user=nobody"] if os.geteuid() == 0 else []), pem))
                self.check_library(hitch.pid, ours)
                return load(ours, f"https://127.0.0.1:{front}/page")

        self.assert_same_on_both(scenario)

    def test_inspected(self):
        """The inspector shows watchers of nghttpd, and gives up where it cannot listen."""
        need("curl", "nghttpd")
        debug = self.folder / "debug"

        def nghttpd(port: int, where: str):
            return server(True, port, "nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", self.folder,
                          port, env={"TAMBOUR_INSPECT": where})

        port = free_port()
        with nghttpd(port, f"unix:{debug}"):
            subprocess.run(["curl", "-s", "--http2-prior-knowledge",
                            f"http://127.0.0.1:{port}/page"], check=True, capture_output=True)
            loop = inspect(debug, "/loops")["loops"][0]
            self.assertEqual(loop["name"], "libev/0")
            self.assertGreater(loop["callbacks"], 0)
            self.assertGreater(loop["references"], 0)
            events = inspect(debug, "/events?sort=kind")["events"]
            self.assertIn(("io", "read"), {(row["kind"], row["awaits"]) for row in events}, events)
            calls = inspect(debug, "/callbacks")["callbacks"]
            self.assertTrue(any(row["place"].startswith("nghttpd+0x") for row in calls), calls)
            self.assertTrue(any(row["state"] == "listen" and row["loop"] == "libev/0"
                                for row in inspect(debug, "/connections")["connections"]))
        for where in ("192.0.2.1:80", "nonsense", "unix:/no/such/directory/debug"):
            port = free_port()
            with nghttpd(port, where):
                pass

    def test_gevent(self):
        """gevent with its own libev binding."""
        python = "/usr/bin/python3"  # Has access to the system's packages.
        need(python)
        probe = subprocess.run([python, "-c", "import gevent.libev.corecext"],
                               capture_output=True, check=False)
        if probe.returncode:
            raise unittest.SkipTest("python3-gevent is not installed")
        # Python's development mode overwrites freed memory.
        for mode in ({}, {"PYTHONDEVMODE": "1"}):
            said = []
            for ours in (False, True):
                done = subprocess.run(command(ours, python, HERE / "gevent_program.py"), text=True,
                                      env={**ENV, "GEVENT_LOOP": "libev-cext", **mode},
                                      timeout=TIMEOUT_S, capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                library, *rest = done.stdout.splitlines()
                self.assertEqual(library.startswith(str(LIBRARIES)), ours, library)
                said.append(rest)
            self.assertGreater(len(said[0]), 10)
            self.assertEqual(said[1], said[0])


if __name__ == "__main__":
    main()
