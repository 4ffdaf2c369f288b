"""Runs existing programs on the original library or on the drop-in.

The arguments of a test that imports this module are: TAMBOUR_RUN LIBRARIES [TEST...]. A test whose
programs are not installed is skipped. Tests use free ports of the loopback interface and temporary
directories, so that they may run at the same time.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

TAMBOUR_RUN, LIBRARIES = (Path(word).resolve() for word in sys.argv[1:3])
TIMEOUT_S = 240  # Of each program; generous, because the machine may be busy.
# Servers refuse to run as root, or become this user.
UNPRIVILEGED = "nobody" if os.geteuid() == 0 else None
ENV = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
       "TAMBOUR_LIBRARIES": str(LIBRARIES), "LC_ALL": "C.UTF-8"}
ENV.pop("LD_LIBRARY_PATH", None)


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program, path=ENV["PATH"]):
            raise unittest.SkipTest(f"{program} is not installed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(ours: bool, *words: object) -> list[str]:
    """The command that runs a program on the drop-in or on the original."""
    return [str(word) for word in ((TAMBOUR_RUN, *words) if ours else words)]


def libraries_of(pid: int, name: str) -> set[str]:
    """The files of a process whose names begin so."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return set(re.findall(rf"(/\S*/{name}[-.\w]*\.so\S*)", maps))


def run(ours: bool, *words: object, status: int = 0, **options) -> str:
    """Runs a program to its end and returns its standard output."""
    done = subprocess.run(command(ours, *words), env={**ENV, **options.pop("env", {})}, text=True,
                          capture_output=True, timeout=TIMEOUT_S, check=False, **options)
    if done.returncode != status:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def eventually(condition, what: str):
    """Waits until the result of a function is true, and returns it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError(f"timed out after 60 s waiting for: {what}")


def connects(address: int | Path) -> bool:
    """Whether a program listens on a port or on a Unix socket."""
    is_port = isinstance(address, int)
    with socket.socket(socket.AF_INET if is_port else socket.AF_UNIX) as probe:
        try:
            probe.connect(("127.0.0.1", address) if is_port else str(address))
        except OSError:
            return False
    return True


@contextmanager
def server(ours: bool, address: int | Path, *words: object, stop: str = "terminate", **options):
    """Runs a program that listens on an address until the block ends."""
    with tempfile.TemporaryFile() as log:
        env = {**ENV, **options.pop("env", {})}
        process = subprocess.Popen(command(ours, *words), env=env, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, **options)

        def listens() -> bool:
            if process.poll() is not None:
                log.seek(0)
                raise AssertionError(f"{words} ended: {log.read().decode()[-2000:]}")
            return connects(address)

        try:
            eventually(listens, f"{words} listens")
            yield process
        finally:
            getattr(process, stop)()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def inspect(path: Path, page: str):
    """What a page of the inspector of a program says: see docs/drop-ins.md."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(str(path))
        connection.sendall(f"GET {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                           .encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise AssertionError(f"{page}: {answer.decode()[:500]}")
    return json.loads(body) if b"application/json" in head else body.decode()


class ProgramTest(unittest.TestCase):
    """A test with a temporary directory that all users may use."""

    maxDiff = None
    library = ""  # The beginning of the names of the libraries that are replaced.

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tambour-programs-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)

    def certificate(self) -> tuple[Path, Path]:
        """A key and a certificate, made by openssl."""
        need("openssl")
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True, timeout=60)
        return key, certificate

    def check_library(self, pid: int, ours: bool) -> None:
        """Verifies that a process uses the drop-in, or that it uses the original."""
        files = libraries_of(pid, self.library)
        self.assertTrue(files)
        for file in files:
            self.assertEqual(file.startswith(str(LIBRARIES)), ours, file)

    def assert_same_on_both(self, scenario):
        """Calls `scenario` for the original, then for the drop-in; the results must be equal."""
        original = scenario(False)
        self.assertEqual(scenario(True), original)
        return original


def main() -> None:
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])
