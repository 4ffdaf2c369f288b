"""The drum: libev's and muduo's famous benchmark, "pass the flower to the drum"."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..pairs import ACTIVE, PAIRS, TIMEOUTS, PairsSuite
from ..suite import mean_after_first

MUDUO = "muduo"
# libev and libevent as in libev's published programs, on which the published results are based.
# libev: each watcher is set to its descriptor again in each iteration, where others only modify the
# events.
LIBEV_PUBLISHED = "libev-published"
# libevent: deleted and added to reset a timeout, where others only add.
PUBLISHED = "libevent-published"
# The third curve of libev's page: the program for libevent on libev's emulation of libevent 1.4.
EMULATION = "libev-emulation"
DROP_IN_EMULATION = "tambour-libev-emulation"
DROP_IN_PUBLISHED = "tambour-libevent-published"
# They scan every descriptor on each wait, and so are off the scale with many pairs.
SCANNING = ("tambour-poll", "tambour-select")


# The points of the published charts: ten in two decades, as far as the limit of open files allows.
PUBLISHED_PAIRS = tuple(int(step * decade) for decade in (100, 1000, 10_000)
                        for step in (1, 2, 3, 4, 5, 6, 7.5)) + (100_000,)


class Drum(PairsSuite):
    """Bytes passed around a ring of socket pairs; three quarters of an event are kernel time."""

    name = "drum"
    title = "Pass the flower to the drum"
    what = ("Each of N socket pairs has a watcher; a byte read from one pair is written to the "
            "next, so that a given number of bytes is always in flight.")
    how = ("An iteration stops, sets and starts every watcher and then passes the bytes on: "
           "round_us is all of it, event_ns the second part per event. Protocol libev: two "
           "iterations a run, of which the second counts; protocol muduo: 25, the mean of all but "
           "the first.")
    order = 10
    parameters = (
        PAIRS, ACTIVE,
        Parameter("writes", "bytes passed on in an iteration", (10_000,)),
        TIMEOUTS,
        Parameter("pipes", "pipes in place of socket pairs; without a value it means yes",
                  (False,), flag=True, silent=True),
        Parameter("protocol", "libev: the second of 2 iterations; muduo: the mean of 24 of "
                  "25 iterations", ("libev",), choices=("libev", MUDUO),
                  silent=True),
    )
    metrics = (Metric("event_ns", "ns", "event processing"),
               Metric("round_us", "µs", "whole iteration"))
    subjects = (*subjects.pick(*subjects.LOOPS, LIBEV_PUBLISHED, EMULATION, DROP_IN_EMULATION,
                               PUBLISHED, DROP_IN_PUBLISHED), *subjects.OBSERVED)
    quick = ({"writes": (5000,), "timeouts": (False, True), "rounds": 40},
             {"pairs": (9900,), "writes": (5000,), "rounds": 20})
    full = (
        {"pairs": PUBLISHED_PAIRS, "active": (100, 1000), "timeouts": (False, True)},
        {"pairs": (1000, 10_000), "active": (100, 1000), "timeouts": (False, True),
         "protocol": (MUDUO,)},
    )

    def unsupported(self, subject, cell):
        if subject.name in (PUBLISHED, DROP_IN_PUBLISHED) and not cell.get("timeouts"):
            return f"identical to {subject.name.removesuffix('-published')} without timeouts"
        if subject.name == "asio" and cell.get("pipes"):
            return "the program for asio reads with socket objects"
        return super().unsupported(subject, cell)

    def arguments(self, cell):
        return super().arguments(cell) + ["--pipes"] * bool(cell.get("pipes"))

    def rounds_of(self, cell):
        return 6 if cell.get("protocol") == MUDUO else self.rounds

    def iterations_of(self, cell):
        return 25 if cell.get("protocol") == MUDUO else 2

    def cost(self, cell):
        pairs = cell.get("pairs")
        return 0.02 + pairs * 1.3e-5 + self.iterations_of(cell) * (
            pairs * 1e-6 + cell.get("writes") * 2e-6)

    def values(self, iterations, cell):
        if cell.get("protocol") != MUDUO:
            return super().values(iterations, cell)
        return mean_after_first(iterations, self.metrics)

    def charts(self, figures):
        """libev's four panels for each variant: whole round and event processing."""
        charts = []
        for shared, cells in figures.groups(("pairs",)):
            section = self.describe(shared, omit=(*figures.constant(), "active"))
            section = "" if section == self.title else section
            for metric, words, scale in (("round_us", "whole iteration", 1.0),
                                         ("event_ns", "event processing", 1e-3)):
                name, title = figures.heading(f"drum-{metric}",
                                              f"{shared['active']:,} active: {words}", shared,
                                              tuple(shared))
                charts.append(Lines(
                    name, section, title, metric, "pairs", cells,
                    "socket pairs", "µs" if scale == 1 else "µs per event", scale, SCANNING))
        return sorted(charts, key=lambda chart: chart.section != charts[0].section)


SUITE = Drum()
