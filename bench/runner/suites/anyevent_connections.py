"""The benchmark of IO::Lambda's manual in AnyEvent's documentation: one connection per line."""

from ..formatting import quantity
from ..model import Metric, Parameter
from ..suite import Suite
from .anyevent import NAMES, SUBJECTS

# AnyEvent 7.17, documentation, section BENCHMARKS: seconds for 500 connections, here in
# microseconds per connection.
PUBLISHED = {"sockets": {"ev": 136, "perl": 170}, "handles": {"ev": 268}}


class AnyEventConnections(Suite):
    """One connection after the other, each for one line."""

    name = "anyevent-connections"
    title = "AnyEvent's connections"
    what = ("A client connects to an echo server, sends a line, waits for its echo, closes the "
            "connection, and begins again. Server and client are one process.")
    how = ("One Perl program for all, AnyEvent with each of its event loops. Style sockets uses "
           "watchers and system calls, style handles uses AnyEvent::Handle on both sides. All "
           "connections are non-blocking. Perl and the kernel take most of the time.")
    order = 42
    parameters = (
        Parameter("style", "interface of the program", ("sockets", "handles"),
                  choices=("sockets", "handles")),
        Parameter("connections", "connections, one after the other", (500,), high=20_000),
    )
    metrics = (Metric("connection_us", "µs", "time per connection"),)
    subjects = SUBJECTS
    rounds = 10
    iterations = 2
    time_limit = 240.0
    quoted = "median"
    decisive = ("connection_us",)
    quick = ()

    def cost(self, cell):
        return 0.1 + cell.get("connections") * 4e-4

    def tables(self, figures):
        """Measured and published values."""
        return [(f"AnyEvent's documentation, style {cell['style']}, µs per connection. Published "
                 "on another machine: compare ratios.",
                 ["name", "median", "published"], rows(figures, cell))
                for cell in figures.cells]


def rows(figures, cell: dict) -> list[list[str]]:
    """One row for each event loop."""
    published = PUBLISHED[cell["style"]]
    return [[NAMES.get(subject, subject), quantity(figures.value(cell, subject, "connection_us")),
             quantity(published.get(subject))] for subject in figures.subjects]


SUITE = AnyEventConnections()
