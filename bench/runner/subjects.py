"""The subjects that suites share, and whether each can be run here.

The executable of a subject is BUILD/bench/<program>-<peer>. What CMake did not find is written
by the build in BUILD/bench/peers.json with the reason, which is passed on to whoever asks.
"""

import json
from pathlib import Path

from .model import Subject


def _tambour(name: str, backend: str, fds_max: int = 0) -> Subject:
    return Subject(name, "tambour", (("TAMBOUR_BACKEND", backend),), backend, fds_max)


_ALL = (
    Subject("tambour", "tambour"),
    _tambour("tambour-epoll", "epoll"),
    _tambour("tambour-uring", "io_uring"),
    _tambour("tambour-poll", "poll"),
    _tambour("tambour-select", "select", fds_max=1024),
    # libev's programs on our libev.so.4.
    Subject("tambour-libev", "tambour-libev"),
    Subject("floor", "floor"),
    Subject("epoll", "epoll"),
    Subject("mutex", "mutex"),
    Subject("iouring", "iouring"),
    Subject("libev", "libev"),
    # libev as the program that it published uses it: one system call more for each pair and round.
    Subject("libev-published", "libev-published"),
    Subject("libevent", "libevent"),
    # libevent as libev's published program uses it: one more system call for each reset timeout.
    Subject("libevent-published", "libevent-published"),
    Subject("libuv", "libuv"),
    Subject("asio", "asio"),
    Subject("boost", "boost"),
    Subject("moodycamel", "moodycamel"),
    Subject("muduo", "muduo"),
    Subject("evpp", "evpp"),
    # evpp built with another queue for what is posted.
    Subject("evpp-boost", "evpp-boost"),
    Subject("evpp-moodycamel", "evpp-moodycamel"),
)
LOOPS = ("tambour", "tambour-epoll", "tambour-uring", "tambour-poll", "tambour-select",
         "tambour-libev", "floor", "epoll", "libev", "libevent", "libuv", "asio", "muduo", "evpp")
OURS = "tambour"
FLOOR = "floor"
# Nobody competes with bare system calls.
BY_HAND = frozenset({FLOOR, "iouring"})


def pick(*names: str) -> tuple[Subject, ...]:
    """The shared subjects of these names, in this order."""
    known = {subject.name: subject for subject in _ALL}
    return tuple(known[name] for name in names)


def is_ours(name: str) -> bool:
    """Tambour in whatever dress: a backend, a drop-in, with spinning on."""
    return name == OURS or name.startswith(f"{OURS}-")


def executable(build: Path, program: str, subject: Subject) -> Path:
    """Where the build puts the subject's program."""
    return build / "bench" / f"{program}-{subject.peer}"


def why_absent(build: Path, program: str, subject: Subject) -> str | None:
    """None when the subject's program is there, else the reason why it is not."""
    path = executable(build, program, subject)
    if path.is_file():
        return None
    try:
        peers = json.loads((build / "bench" / "peers.json").read_text())
        peer = peers.get(subject.peer, {})
        if peer.get("found") is False:
            return peer.get("why") or "not found when the build was configured"
    except (OSError, ValueError, AttributeError):
        pass  # no such list, or not one: the plain reason below is still true
    return f"not built: there is no bench/{path.name} in the build directory"
