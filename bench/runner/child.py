"""Runs one child process on a chosen processor, with a time limit and a clean environment.

When `run` returns or raises, the child and all processes it started have been killed: each child
has a session of its own, which is killed as a group. Common mistake: the set-up runs between fork
and exec, which is safe only while the runner has a single thread; nothing may start another.
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

from .model import NotMeasured, TimeLimitExceeded

TICK_S = 0.25
REASON_LINES = 3
_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000
_libc = ctypes.CDLL(None, use_errno=True)

# Subjects do not inherit the caller's environment: its size moves the stack, its locale changes
# code paths, and LIBEV_FLAGS or EVENT_NOEPOLL would silently change the backend.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}


class Launcher:
    """Runs the subjects of one build, pinned to one processor.

    Programs with two ends move the second one to another processor themselves.
    """

    def __init__(self, build: Path, cpus: list[int], cpu: int,
                 tick: Callable[[], None] = lambda: None) -> None:
        self.build = build
        self.time_limit = 60.0
        self.tick = tick
        self._cpus = cpus
        self._cpu = cpu

    def measured_cpus(self, two_ended: bool) -> list[int]:
        """The processors that a program uses: with two ends, all that are allowed."""
        return self._cpus if two_ended else [self._cpu]

    def leave_measured_cpu(self) -> None:
        """Moves the runner itself off the measured processor, if there is another.

        Programs with two ends read the runner's affinity to find the processors they may use.
        """
        others = set(self._cpus) - {self._cpu}
        if others:
            os.sched_setaffinity(0, others)

    def run(self, argv: list[str], *, env: tuple[tuple[str, str], ...] = (),
            fixed_addresses: bool = False) -> str:
        """The child's standard output; NotMeasured, with the reason, if it fails or is too slow."""

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
            reason = getattr(error, "strerror", None) or error
            raise NotMeasured(f"could not be started: {reason}") from None
        try:
            out, err = self._wait(child)
        finally:
            _kill_group(child)
        if child.returncode != 0:
            raise NotMeasured(_failure(child.returncode, err))
        return out

    def _wait(self, child: subprocess.Popen) -> tuple[str, str]:
        end = time.monotonic() + self.time_limit
        while True:
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise TimeLimitExceeded(f"killed at its time limit of {self.time_limit:g} s")
            try:
                out, err = child.communicate(timeout=min(TICK_S, remaining))
            except subprocess.TimeoutExpired:
                self.tick()
                continue
            return out.decode(errors="replace"), err.decode(errors="replace")


def _kill_group(child: subprocess.Popen) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # no process of the group exists any more
    child.wait()
    for pipe in (child.stdout, child.stderr):
        pipe.close()


def _failure(status: int, err: str) -> str:
    """Why a child failed: its exit status and its last lines, without valgrind's stack traces.

    The cause is often not in the last line: the server reports it first, and then its client.
    """
    lines = [re.sub(r"^==\d+==", "", line).strip() for line in err.splitlines()]
    lines = [line for line in lines if line and not re.match(r"(at|by) 0x", line)]
    unique = [line[:200] for line, _ in itertools.groupby(lines)]
    said = f": {'; '.join(unique[-REASON_LINES:])}" if unique else " without a message"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}{said}"
    return f"exit {status}{said}"
