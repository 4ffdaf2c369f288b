"""Descriptors' events alone: evpp's suite, which is the drum with as many hand-overs as pairs."""

from .. import subjects
from ..charts import Lines
from ..model import Metric
from ..pairs import ACTIVE, PAIRS, PairsSuite
from ..suite import mean_but_first

PAIRS_OF_EVPP = (500, 1000, 10_000, 30_000)


class IoEvent(PairsSuite):
    """Rounds of one lap each, whose mean counts."""

    name = "ioevent"
    title = "I/O events"
    what = ("evpp's I/O-event suite: bytes go round a ring of socket pairs, with as many "
            "hand-overs a round as there are pairs, and so pairs + active reads.")
    how = ("The program of the drum. A run has 25 rounds, the first is dropped, and the mean of "
           "the others counts; event_ns is per event, round_us for a whole round, with the time "
           "to start the watchers anew.")
    order = 12
    parameters = (type(PAIRS)(PAIRS.name, PAIRS.help, PAIRS_OF_EVPP), ACTIVE)
    metrics = (Metric("event_ns", "ns", "event processing"),
               Metric("round_us", "µs", "whole round"))
    subjects = subjects.pick("tambour", "tambour-uring", "floor", "epoll", "libev", "libevent",
                             "libuv", "asio", "muduo", "evpp")
    rounds = 3
    iterations = 25
    quoted = "median"
    quick = ({"pairs": (1000,)},)
    full = ({"rounds": 10},)

    def arguments(self, cell):
        return ["--writes", str(cell.get("pairs")), *super().arguments(cell)]

    def cost(self, cell):
        return 0.05 + cell.get("pairs") * (1e-5 + self.iterations * 3e-6)

    def samples(self, iterations, cell):
        return mean_but_first(iterations, self.metrics)

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("pairs",)):
            for metric, what, unit, scale in (
                    ("event_ns", "event processing", "µs per event", 1e-3),
                    ("round_us", "whole round", "µs", 1.0)):
                name, title = figures.heading(f"ioevent-{metric}",
                                              f"{shared['active']:,} active: {what}", shared,
                                              ("active",))
                charts.append(Lines(name, "", title, metric, "pairs", cells, "socket pairs", unit,
                                    scale))
        return charts


SUITE = IoEvent()
