"""Run one child on a chosen processor, with a time limit, in a clean environment.

Always: a child and all it started are gone when `run` returns or raises, because each has a
session of its own that is killed as a group. Trap: the set-up runs between fork and exec, which
is safe only while the runner has one thread, so nothing here or in progress.py starts another.
"""

import ctypes
import itertools
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable

from .model import Left, TimeLimit

TICK_S = 0.25
LINES_OF_REASON = 3
_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000
_libc = ctypes.CDLL(None, use_errno=True)

# Nothing of the caller's environment reaches a subject: its size moves the stack, its locale
# changes code paths, and LIBEV_FLAGS or EVENT_NOEPOLL would quietly change the backend.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}


class Launcher:
    """Spawns subjects of one build on one core. What has two ends moves the other off it itself."""

    def __init__(self, build: Path, cpus: list[int], cpu: int,
                 tick: Callable[[], None] = lambda: None) -> None:
        self.build = build
        self.time_limit = 60.0
        self.tick = tick
        self._cpus = cpus
        self._cpu = cpu

    def stand_aside(self) -> None:
        """Keep the runner itself off the measured core, where there is another.

        The children's other ends look here for the processors that they may use.
        """
        others = set(self._cpus) - {self._cpu}
        if others:
            os.sched_setaffinity(0, others)

    def run(self, argv: list[str], *, env: tuple[tuple[str, str], ...] = (),
            fixed_addresses: bool = False) -> str:
        """The child's standard output; Left with the reason when it fails, TimeLimit when late."""

        def prepare() -> None:
            os.sched_setaffinity(0, {self._cpu})
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if fixed_addresses:
                _libc.personality(_ADDR_NO_RANDOMIZE)

        try:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**ENVIRONMENT, **dict(env)}, cwd="/", start_new_session=True,
                preexec_fn=prepare)
        except (OSError, subprocess.SubprocessError) as error:
            raise Left(f"could not be started: {getattr(error, 'strerror', None) or error}") \
                from None
        try:
            out, err = self._wait(child)
        finally:
            _kill_group(child)
        if child.returncode != 0:
            raise Left(_failure(child.returncode, err))
        return out

    def _wait(self, child: subprocess.Popen) -> tuple[str, str]:
        end = time.monotonic() + self.time_limit
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeLimit(f"killed at its time limit of {self.time_limit:g} s")
            try:
                out, err = child.communicate(timeout=min(TICK_S, left))
            except subprocess.TimeoutExpired:
                self.tick()
                continue
            return out.decode(errors="replace"), err.decode(errors="replace")


def _kill_group(child: subprocess.Popen) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nobody of the group is left
    child.wait()
    for pipe in (child.stdout, child.stderr):
        pipe.close()


def _failure(status: int, err: str) -> str:
    """Why a child failed, in its own last words; valgrind's stack traces are not words.

    The cause often stands before the last line: a server's own error, and then its client's.
    """
    lines = [re.sub(r"^==\d+==", "", line).strip() for line in err.splitlines()]
    lines = [line for line in lines if line and not re.match(r"(at|by) 0x", line)]
    once = [line[:200] for line, _ in itertools.groupby(lines)]
    said = f": {'; '.join(once[-LINES_OF_REASON:])}" if once else ", and said nothing"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}{said}"
    return f"exit {status}{said}"
