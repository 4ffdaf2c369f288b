"""The drum: libev's and muduo's famous benchmark, "pass the flower to the drum"."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..pairs import ACTIVE, PAIRS, TIMEOUTS, PairsSuite
from ..suite import mean_but_first

MUDUO = "muduo"
# libev and libevent as libev's published programs use them, which is what the field's figures rest
# on. libev: each watcher is told its descriptor anew in each round; its users modify the events.
LIBEV_PUBLISHED = "libev-published"
# libevent: deleted and added again for each reset timeout; its users add it again and no more.
PUBLISHED = "libevent-published"
# They look at every descriptor on each wait: off the scale where pairs are many.
SCANNING = ("tambour-poll", "tambour-select")


class Drum(PairsSuite):
    """Bytes handed round socket pairs; the kernel's share is three quarters of each event."""

    name = "drum"
    title = "Pass the flower to the drum"
    what = ("Each of N socket pairs has a watcher; a byte read from one is written to the next, "
            "so that the given number of hand-overs is always under way.")
    how = ("A round is: stop, set and start every watcher, then the hand-overs (round_us); "
           "event_ns is the second part, per event. Protocol libev: each run does two rounds and "
           "the second counts, minimum of the runs; protocol muduo: 25 rounds in a run, the "
           "first dropped, the mean of 24.")
    order = 10
    parameters = (
        PAIRS, ACTIVE,
        Parameter("writes", "hand-overs a round", (10_000,)),
        TIMEOUTS,
        Parameter("protocol", "libev: minimum over runs of the second round; "
                  "muduo: mean of 24 rounds of one run", ("libev",), choices=("libev", MUDUO),
                  silent=True),
    )
    metrics = (Metric("event_ns", "ns", "event processing"),
               Metric("round_us", "µs", "whole round"))
    subjects = subjects.pick(*subjects.LOOPS, LIBEV_PUBLISHED, PUBLISHED)
    quick = ({"pairs": (100, 1000, 9900), "timeouts": (False, True), "rounds": 3},
             {"pairs": (1000, 9900), "active": (1000,), "timeouts": (False, True), "rounds": 3})
    full = (
        {"pairs": (100, 300, 1000, 3000, 10_000, 30_000, 100_000), "active": (100, 1000),
         "timeouts": (False, True)},
        {"pairs": (1000, 10_000), "active": (100, 1000), "timeouts": (False, True),
         "protocol": (MUDUO,)},
    )

    def unfit(self, subject, cell):
        if subject.name == PUBLISHED and not cell.get("timeouts"):
            return "without timeouts it is libevent"
        return super().unfit(subject, cell)

    def rounds_of(self, cell):
        return 3 if cell.get("protocol") == MUDUO else 6

    def iterations_of(self, cell):
        return 25 if cell.get("protocol") == MUDUO else 2

    def cost(self, cell):
        pairs = cell.get("pairs")
        return 0.05 + pairs * 1e-5 + self.iterations_of(cell) * (
            pairs * 1e-6 + cell.get("writes") * 2e-6)

    def samples(self, iterations, cell):
        if cell.get("protocol") != MUDUO:
            return super().samples(iterations, cell)
        return mean_but_first(iterations, self.metrics)

    def charts(self, figures):
        """libev's four panels for each variant: whole round and event processing."""
        charts = []
        for shared, cells in figures.groups(("pairs",)):
            section = self.describe(shared, but=(*figures.constant(), "active"))
            section = "" if section == self.title else section
            for metric, words, scale in (("round_us", "whole round", 1.0),
                                         ("event_ns", "event processing", 1e-3)):
                name, title = figures.heading(f"drum-{metric}",
                                              f"{shared['active']:,} active: {words}", shared,
                                              tuple(shared))
                charts.append(Lines(
                    name, section, title, metric, "pairs", cells,
                    "socket pairs", "µs" if scale == 1 else "µs per event", scale, SCANNING))
        return sorted(charts, key=lambda chart: chart.section != charts[0].section)


SUITE = Drum()
