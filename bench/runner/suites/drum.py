"""The drum: libev's and muduo's famous benchmark, "pass the flower to the drum"."""

from .. import subjects
from ..charts import Lines
from ..model import Cell, Left, Metric, Parameter
from ..suite import Suite, mean_but_first

PAIRS = Parameter("pairs", "socket pairs; clamped to the limit of open files", (1000,))
ACTIVE = Parameter("active", "hand-overs under way at once; at most as many as pairs", (100,))
TIMEOUTS = Parameter("timeouts", "a 10 to 11 s idle timeout on each watcher, reset on each read; "
                     "alone it means yes", (False,), flag=True)
MUDUO = "muduo"
# libevent as libev's published program uses it: deleted and added again for each reset timeout,
# which is what the field's figures rest on; libevent's own users add it again and no more.
PUBLISHED = "libevent-published"
# They look at every descriptor on each wait: off the scale where pairs are many.
SCANNING = ("tambour-poll", "tambour-select")
# Descriptors that a loop has open besides its sockets: streams, wake-up, what a library keeps.
FDS_BESIDES = 24


def adjust_pairs(params: dict, limits) -> dict:
    """Pairs within the limit of open files, and no more active than there are pairs."""
    params["pairs"] = min(params["pairs"], limits.pairs_max)
    if params["active"] > params["pairs"]:
        raise Left(f"{params['active']:,} active are more than {params['pairs']:,} pairs")
    return params


def unfit_for_pairs(subject, cell: Cell) -> str | None:
    """select's limit: descriptors below 1024."""
    if subject.fds_max and 2 * cell.get("pairs") + FDS_BESIDES > subject.fds_max:
        return f"{subject.backend} ends at {subject.fds_max:,} descriptors"
    return None


class Drum(Suite):
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
    subjects = subjects.pick(*subjects.LOOPS, PUBLISHED)
    quick = ({"pairs": (100, 1000, 9900), "active": (100, 1000), "timeouts": (False, True),
              "rounds": 3},)
    full = (
        {"pairs": (100, 300, 1000, 3000, 10_000, 30_000, 100_000), "active": (100, 1000),
         "timeouts": (False, True)},
        {"pairs": (1000, 10_000), "active": (100, 1000), "timeouts": (False, True),
         "protocol": (MUDUO,)},
    )

    def adjust(self, params, limits):
        return adjust_pairs(params, limits)

    def adjusted_why(self, limits):
        return f"the limit of open files is {limits.open_files:,}"

    def unfit(self, subject, cell):
        if subject.name == PUBLISHED and not cell.get("timeouts"):
            return "without timeouts it is libevent"
        return unfit_for_pairs(subject, cell)

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
            tail = "-".join(f"{n}{v}" if not isinstance(v, bool) else n
                            for n, v in shared.items() if v is not False and n != "writes")
            for metric, words, scale in (("round_us", "whole round", 1.0),
                                         ("event_ns", "event processing", 1e-3)):
                charts.append(Lines(
                    f"drum-{metric}-{tail}", section,
                    f"{shared['active']:,} active: {words}", metric, "pairs", cells,
                    "socket pairs", "µs" if scale == 1 else "µs per event", scale, SCANNING))
        return sorted(charts, key=lambda chart: chart.section != charts[0].section)


SUITE = Drum()
