"""The subjects that suites share, and whether each is available in a build.

The executable of a subject is BUILD/bench/<program>-<peer>. The build writes the peers that it did
not find, with the reason, into BUILD/bench/peers.json.
"""

import json
from dataclasses import replace
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
    # The programs of libev, linked to Tambour's libev.so.4.
    Subject("tambour-libev", "tambour-libev"),
    # The programs of libevent, linked to Tambour's libevent_core-2.1.so.7.
    Subject("tambour-libevent", "tambour-libevent"),
    Subject("floor", "floor"),
    Subject("epoll", "epoll"),
    Subject("mutex", "mutex"),
    Subject("iouring", "iouring"),
    Subject("libev", "libev"),
    # libev as in the program published with it: one more system call per pair and round.
    Subject("libev-published", "libev-published"),
    # The program for libevent on libev's emulation of libevent 1.4, and on Tambour's libev.so.4.
    Subject("libev-emulation", "libev-emulation"),
    Subject("tambour-libev-emulation", "tambour-libev-emulation"),
    Subject("libevent", "libevent"),
    # libevent as in the program published with libev: one more call per timeout reset.
    Subject("libevent-published", "libevent-published"),
    Subject("tambour-libevent-published", "tambour-libevent-published"),
    Subject("libuv", "libuv"),
    Subject("asio", "asio"),
    Subject("boost", "boost"),
    Subject("moodycamel", "moodycamel"),
    Subject("muduo", "muduo"),
    Subject("evpp", "evpp"),
    # evpp built with one of its other two queues for posted tasks.
    Subject("evpp-boost", "evpp-boost"),
    Subject("evpp-moodycamel", "evpp-moodycamel"),
    # Only for suites of TLS and HTTP.
    Subject("nginx", "nginx"),
    # Only for suites of TLS.
    Subject("hitch", "hitch"),
    # Only for suites of HTTP.
    Subject("h2o", "h2o"),
    Subject("go", "go"),
    Subject("node", "node"),
    Subject("drogon", "drogon"),
    Subject("hyper", "hyper"),
    # Only for suites of HTTP/2.
    Subject("nghttpd", "nghttpd"),
    # Only for suites of WebSockets.
    Subject("uwebsockets", "uwebsockets"),
    Subject("libwebsockets", "libwebsockets"),
    Subject("gws", "gws"),
    Subject("coder", "coder"),
    Subject("tungstenite", "tungstenite"),
    # Only for suites of DNS.
    Subject("c-ares", "cares"),
    Subject("nsd", "nsd"),
    Subject("unbound", "unbound"),
)
# Tambour with an inspector, without and with 100 requests for its metrics a second: see
# bench/common/observed.h.
OBSERVED = tuple(Subject(f"tambour-{name}", "tambour", (("TAMBOUR_BENCH_OBSERVED", value),))
                 for name, value in (("observed", "on"), ("scraped", "scraped")))
LOOPS = ("tambour", "tambour-epoll", "tambour-uring", "tambour-poll", "tambour-select",
         "tambour-libev", "tambour-libevent", "floor", "epoll", "libev", "libevent", "libuv",
         "asio", "muduo", "evpp")
OURS = "tambour"
# The A/A control: the program of OURS under a second name. Its ratio to Tambour should be 1.
CONTROL = "tambour-aa"
FLOOR = "floor"
# Written for these benchmarks, with system calls and the standard library only: a reference for
# what is possible, not a library that Tambour competes with.
REFERENCES = frozenset({FLOOR, "epoll", "iouring", "mutex"})
# The quick set leaves out Tambour's other backends, the published variants and most references.
QUICK = (OURS, FLOOR, "libev", "libevent", "libuv", "asio", "boost", "moodycamel", "muduo", "evpp")


def pick(*names: str) -> tuple[Subject, ...]:
    """The shared subjects with these names, in this order."""
    known = {subject.name: subject for subject in _ALL}
    return tuple(known[name] for name in names)


def with_control(present: list[Subject]) -> list[Subject]:
    """The subjects with the A/A control, if there is anything to compare Tambour with."""
    ours = next((subject for subject in present if subject.name == OURS), None)
    if ours is None or len(present) == 1:
        return present
    return [*present, replace(ours, name=CONTROL)]


def is_ours(name: str) -> bool:
    """Whether a subject is Tambour in any configuration: a backend, a drop-in, the control."""
    return name == OURS or name.startswith(f"{OURS}-")


def is_peer(name: str) -> bool:
    """Whether a subject is a library that Tambour competes with."""
    return not is_ours(name) and name not in REFERENCES


def executable(build: Path, program: str, subject: Subject) -> Path:
    """The path of the subject's program in the build directory."""
    return build / "bench" / f"{program}-{subject.peer}"


def why_absent(build: Path, program: str, subject: Subject) -> str | None:
    """The reason why the subject's program does not exist; None if it does."""
    path = executable(build, program, subject)
    if path.is_file():
        return None
    try:
        peers = json.loads((build / "bench" / "peers.json").read_text())
        peer = peers.get(subject.peer, {})
        if peer.get("found") is False:
            return peer.get("why") or "not found when the build was configured"
    except (OSError, ValueError, AttributeError):
        pass  # without a valid list of peers, the general reason below is still correct
    return f"not built: there is no bench/{path.name} in the build directory"
