"""AnyEvent's tables of a large and a small server, in Perl, on every loop that AnyEvent knows."""

from ..model import Metric, Parameter, Subject
from ..suite import Suite
from ..words import quantity

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
# A socket pair, and the copy that AnyEvent makes of a handle on some of its loops. All are given as
# many servers as fit on each.
FDS_PER_PAIR = 3
# AnyEvent 7.17, documentation, section BENCHMARKS: (create, request) in microseconds. POE by
# POE::Loop::Event.
PUBLISHED = {
    "large": {"ev": (62.66, 7.99), "perl": (68.32, 32.64), "ioasync": (174.06, 101.15),
              "ioasync-poll": (174.67, 610.84), "event": (202.69, 242.91),
              "glib": (557.01, 1689.52), "poe": (341.54, 12086.32)},
    "small": {"ev": (20.00, 6.54), "perl": (25.75, 12.62), "event": (81.27, 35.86),
              "glib": (32.63, 15.48), "poe": (261.87, 276.28)},
}


class AnyEvent(Suite):
    """The tables that Perl people know: one program, AnyEvent on each loop."""

    name = "anyevent"
    title = "AnyEvent's servers"
    what = ("Each server has a socket pair, a watcher on one end and an idle timeout; a byte that "
            "arrives is passed on to a random other server and the timeout made anew. Large: "
            "10,000 servers, 100 active; small: 8 and 3.")
    how = ("One program in Perl for all, AnyEvent on each of its loops. create_us is for a socket "
           "pair and two watchers, request_us for a byte passed on, Perl and the kernel included.")
    order = 40
    parameters = (
        Parameter("table", "which of the two", ("large", "small"), choices=("large", "small")),
        Parameter("milliseconds", "length of a measurement", (500,), high=50_000,
                  words="{:,} ms"),
    )
    metrics = (Metric("create_us", "µs", "create"), Metric("request_us", "µs", "request"))
    subjects = SUBJECTS
    rounds = 3
    iterations = 1
    time_limit = 240.0
    quoted = "median"
    quick = ({"table": ("small",), "milliseconds": (200,)},)
    full = ({"table": ("large", "small")},)

    def adjust(self, params, limits):
        fitting = limits.descriptors_max // FDS_PER_PAIR
        params["sockets"] = 2 * min(PAIRS[params["table"]], fitting)
        if params["sockets"] < 2 * ACTIVE[params["table"]]:
            params["sockets"] = 0  # The program says it best.
        return params

    def cost(self, cell):
        return 0.5 + cell.get("milliseconds") * 1.2e-3 + cell.get("sockets", 0) * 1e-4

    def tables(self, figures):
        return [(caption(cell), ["name", "sockets", "create", "request", "published create",
                                 "published request"], rows(figures, cell))
                for cell in figures.cells]


def caption(cell: dict) -> str:
    """What stands above one of the tables."""
    return (f"AnyEvent's table, {cell['table']} server: µs, medians. Published figures are those "
            "of AnyEvent's documentation, of another machine, and years old: ratios within each "
            "column compare")


def rows(figures, cell: dict) -> list[list[str]]:
    """One row for each loop."""
    published = PUBLISHED[cell["table"]]
    table = []
    for subject in figures.subjects:
        values = [figures.value(cell, subject, name) for name in ("create_us", "request_us")]
        table.append([NAMES.get(subject, subject), f"{cell.get('sockets', 0):,}",
                      *(quantity(value) for value in values),
                      *(quantity(value) for value in published.get(subject, (None, None)))])
    return table


SUITE = AnyEvent()
