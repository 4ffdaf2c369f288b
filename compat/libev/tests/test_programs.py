"""Existing programs produce the same output on the original and on the drop-in.

Usage: test_programs.py TAMBOUR_RUN LIBRARIES [TEST...]
A program that is not installed is skipped. Uses free ports of the loopback interface.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import ExitStack, contextmanager
from pathlib import Path

TAMBOUR_RUN, LIBRARIES = (Path(word).resolve() for word in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
REQUESTS = int(os.environ.get("TAMBOUR_TEST_REQUESTS", "100000"))
PATIENCE = 240  # The timeout of each program, in seconds.
ENV = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
       "TAMBOUR_LIBRARIES": str(LIBRARIES)}
ENV.pop("LD_LIBRARY_PATH", None)


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program, path=ENV["PATH"]):
            raise unittest.SkipTest(f"{program} is not installed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def on(ours: bool, *words: object) -> list[str]:
    return [str(word) for word in ((TAMBOUR_RUN, *words) if ours else words)]


def libev_of(pid: int) -> str:
    maps = Path(f"/proc/{pid}/maps").read_text()
    return (re.findall(r"(/\S*libev\.so\S*)", maps) or [""])[0]


@contextmanager
def server(ours: bool, port: int, *words: object):
    """Runs a program that listens on a port until the block ends."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(on(ours, *words), env=ENV, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
        try:
            wait_for(port, process, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(port: int, process, log) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
        if process.poll() is not None:
            break
    log.seek(0)
    raise AssertionError(f"{process.args} does not listen: {log.read().decode()[-2000:]}")


def load(ours: bool, url: str) -> list[str]:
    """Runs h2load and returns its counters, without the timings."""
    done = subprocess.run(on(ours, "h2load", "-n", REQUESTS, "-c", 20, "-m", 20, url), env=ENV,
                          capture_output=True, text=True, timeout=PATIENCE, check=True)
    return [line for line in done.stdout.splitlines()
            if line.startswith(("requests:", "status codes:", "Application protocol"))]


class Programs(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tambour-programs-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "page").write_text("It works.\n" * 20)

    def certificate(self) -> tuple[Path, Path]:
        need("openssl")
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True, timeout=60)
        return key, certificate

    def check_library(self, process, ours: bool) -> None:
        self.assertEqual(libev_of(process.pid).startswith(str(LIBRARIES)), ours)

    def both(self, play) -> None:
        """Calls `play` for the original, then for the drop-in, and compares the results."""
        original = play(False)
        self.assertIn(f"{REQUESTS} succeeded", " ".join(original))
        self.assertEqual(play(True), original)

    def test_http2(self):
        """h2load connects to nghttpd through nghttpx, without TLS."""
        need("h2load", "nghttpd", "nghttpx")

        def play(ours: bool) -> list[str]:
            back, front = free_port(), free_port()
            with ExitStack() as stack:
                nghttpd = stack.enter_context(
                    server(ours, back, "nghttpd", "--no-tls", "-a", "127.0.0.1",
                           "-d", self.folder, back))
                nghttpx = stack.enter_context(
                    server(ours, front, "nghttpx", f"--frontend=127.0.0.1,{front};no-tls",
                           f"--backend=127.0.0.1,{back};;proto=h2", "--single-process",
                           "--conf=/dev/null", "--errorlog-file=/dev/null"))
                self.check_library(nghttpd, ours)
                self.check_library(nghttpx, ours)
                return load(ours, f"http://127.0.0.1:{front}/page")

        self.both(play)

    def test_http2_over_tls(self):
        """h2load connects to nghttpd through nghttpx, with TLS."""
        need("h2load", "nghttpd", "nghttpx")
        key, certificate = self.certificate()

        def play(ours: bool) -> list[str]:
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

        self.both(play)

    def test_hitch(self):
        """hitch terminates TLS in front of nghttpd."""
        need("h2load", "nghttpd", "hitch")
        key, certificate = self.certificate()
        pem = self.folder / "both.pem"
        pem.write_text(key.read_text() + certificate.read_text())

        def play(ours: bool) -> list[str]:
            back, front = free_port(), free_port()
            with ExitStack() as stack:
                stack.enter_context(server(ours, back, "nghttpd", "--no-tls", "-a", "127.0.0.1",
                                           "-d", self.folder, back))
                hitch = stack.enter_context(
                    server(ours, front, "hitch", f"--backend=[127.0.0.1]:{back}",
                           f"--frontend=[127.0.0.1]:{front}", "--alpn-protos=h2", "--workers=1",
                           *(["--user=nobody"] if os.geteuid() == 0 else []), pem))
                self.check_library(hitch, ours)
                return load(ours, f"https://127.0.0.1:{front}/page")

        self.both(play)

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
                done = subprocess.run(on(ours, python, HERE / "gevent_program.py"), text=True,
                                      env={**ENV, "GEVENT_LOOP": "libev-cext", **mode},
                                      timeout=PATIENCE, capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                library, *rest = done.stdout.splitlines()
                self.assertEqual(library.startswith(str(LIBRARIES)), ours, library)
                said.append(rest)
            self.assertGreater(len(said[0]), 10)
            self.assertEqual(said[1], said[0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
