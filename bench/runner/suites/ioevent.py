"""evpp's I/O-event suite: the drum with as many bytes passed on as there are pairs."""

from .. import subjects
from ..charts import Lines
from ..model import Metric
from ..pairs import ACTIVE, PAIRS, PairsSuite
from ..suite import mean_after_first

PAIRS_OF_EVPP = (500, 1000, 10_000, 30_000)


class IoEvent(PairsSuite):
    """Iterations of one lap around the ring, whose mean counts."""

    name = "ioevent"
    title = "I/O events"
    what = ("evpp's I/O-event suite: bytes go around a ring of socket pairs, with as many bytes "
            "passed on in an iteration as there are pairs.")
    how = ("The program of the drum. A run has 25 iterations; the mean of all but the first "
           "counts. event_ns is per event, round_us for a whole iteration, which includes starting "
           "the watchers.")
    order = 12
    parameters = (type(PAIRS)(PAIRS.name, PAIRS.help, PAIRS_OF_EVPP), ACTIVE)
    metrics = (Metric("event_ns", "ns", "event processing"),
               Metric("round_us", "µs", "whole iteration"))
    subjects = subjects.pick("tambour", "tambour-uring", "floor", "epoll", "libev", "libevent",
                             "libuv", "asio", "muduo", "evpp")
    rounds = 6
    iterations = 25
    quoted = "median"
    quick = ()  # the drum covers it
    full = ({"rounds": 10},)

    def arguments(self, cell):
        return ["--writes", str(cell.get("pairs")), *super().arguments(cell)]

    def cost(self, cell):
        return 0.05 + cell.get("pairs") * (1e-5 + self.iterations * 3e-6)

    def values(self, iterations, cell):
        return mean_after_first(iterations, self.metrics)

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("pairs",)):
            for metric, what, unit, scale in (
                    ("event_ns", "event processing", "µs per event", 1e-3),
                    ("round_us", "whole iteration", "µs", 1.0)):
                name, title = figures.heading(f"ioevent-{metric}",
                                              f"{shared['active']:,} active: {what}", shared,
                                              ("active",))
                charts.append(Lines(name, "", title, metric, "pairs", cells, "socket pairs", unit,
                                    scale))
        return charts


SUITE = IoEvent()
