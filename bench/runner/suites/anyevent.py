"""AnyEvent's tables of a large and a small server, in Perl, on every loop that AnyEvent knows."""

from ..formatting import quantity
from ..model import Metric, Parameter, Subject
from ..suite import Suite

SUBJECTS = (
    Subject("tambour", "tambour"), Subject("ev", "ev"), Subject("perl", "perl"),
    Subject("ioasync", "ioasync", backend="epoll"),
    Subject("ioasync-poll", "ioasync-poll", backend="poll"),
    Subject("event", "event"), Subject("glib", "glib"), Subject("poe", "poe"),
)
NAMES = {"tambour": "Tambour", "ev": "EV", "perl": "Perl", "ioasync": "IOAsync, epoll",
         "ioasync-poll": "IOAsync, poll", "event": "Event", "glib": "Glib", "poe": "POE"}
PAIRS = {"large": 10_000, "small": 8}
ACTIVE = {"large": 100, "small": 3}
# A socket pair, and the duplicate that AnyEvent makes of a handle with some event loops. All
# subjects get as many servers as fit with each of them.
FDS_PER_PAIR = 3
# AnyEvent 7.17, documentation, section BENCHMARKS: (create, request) in microseconds. POE with
# POE::Loop::Event.
PUBLISHED = {
    "large": {"ev": (62.66, 7.99), "perl": (68.32, 32.64), "ioasync": (174.06, 101.15),
              "ioasync-poll": (174.67, 610.84), "event": (202.69, 242.91),
              "glib": (557.01, 1689.52), "poe": (341.54, 12086.32)},
    "small": {"ev": (20.00, 6.54), "perl": (25.75, 12.62), "event": (81.27, 35.86),
              "glib": (32.63, 15.48), "poe": (261.87, 276.28)},
}


class AnyEvent(Suite):
    """The tables of AnyEvent's documentation: one program, AnyEvent on each event loop."""

    name = "anyevent"
    title = "AnyEvent's servers"
    what = ("Each server has a socket pair, a watcher on one end and an idle timeout; it forwards "
            "each byte that arrives to a random other server and replaces the timeout. Large: "
            "10,000 servers, 100 active; small: 8 and 3.")
    how = ("One Perl program for all, AnyEvent with each of its event loops. create_us: a socket "
           "pair and two watchers; request_us: a forwarded byte, Perl and the kernel included.")
    order = 40
    parameters = (
        Parameter("table", "which of the two tables", ("large", "small"),
                  choices=("large", "small")),
        Parameter("milliseconds", "length of a measurement", (500,), high=50_000,
                  format="{:,} ms"),
    )
    metrics = (Metric("create_us", "µs", "create"), Metric("request_us", "µs", "request"))
    subjects = SUBJECTS
    rounds = 6
    iterations = 1
    time_limit = 240.0
    quoted = "median"
    decisive = ("create_us", "request_us")
    quick = ({"table": ("small",), "milliseconds": (50,), "rounds": 20},)
    quick_subjects = ("tambour", "ev", "perl")
    full = ({"table": ("large", "small")},)

    def adjust(self, params, limits):
        fitting = limits.descriptors_max // FDS_PER_PAIR
        params["sockets"] = 2 * min(PAIRS[params["table"]], fitting)
        if params["sockets"] < 2 * ACTIVE[params["table"]]:
            params["sockets"] = 0  # the program fails, with a message
        return params

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3 + cell.get("sockets", 0) * 1e-4

    def tables(self, figures):
        """AnyEvent's tables, one for each of their columns: measured and published values."""
        return [(f"AnyEvent's documentation, {cell['table']} server, {cell.get('sockets', 0):,} "
                 f"sockets: {metric.title}, µs. Published on another machine: compare ratios.",
                 ["name", "median", "published"], rows(figures, cell, column, metric.name))
                for cell in figures.cells for column, metric in enumerate(self.metrics)]


def rows(figures, cell: dict, column: int, metric: str) -> list[list[str]]:
    """One row for each event loop."""
    published = PUBLISHED[cell["table"]]
    return [[NAMES.get(subject, subject), quantity(figures.value(cell, subject, metric)),
             quantity(published.get(subject, (None, None))[column])]
            for subject in figures.subjects]


SUITE = AnyEvent()
