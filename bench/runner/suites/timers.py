"""Timers: arm, reset, cancel and expire many of them."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite

OPERATIONS = 100_000  # the default of the programs
TITLES = {"arm_ns": "arm", "reset_ns": "reset", "cancel_ns": "cancel", "expire_ns": "expire",
         "reset_whole_ns": "reset once (total)", "cancel_whole_ns": "cancel (total)",
         "request_ns": "request"}
SPREAD, SAME = "spread", "same"


class Timers(Suite):
    """The cost of one operation on one of N timers."""

    name = "timers"
    title = "Timers"
    what = ("N idle timeouts of 30 to 60 s are armed, reset to a minute in random order, and "
            "cancelled; then N timers are armed and expire. A request of a server stops an idle "
            "timeout, starts and stops its own timeout, and starts the idle timeout again.")
    how = ("Time per operation, including one iteration of the loop for every N operations; for "
           "every 100 requests; of two iterations of a run the second counts. libev.so.4 on "
           "Tambour defers the work of a reset until the former deadline, once for any number of "
           "resets: \"total\" includes this work, for a timer that is reset once.")
    order = 20
    parameters = (Parameter("timers", "timers in the loop", (1000, 10_000, 100_000)),
                  Parameter("deadlines", "idle timeouts of different lengths, or of the same",
                            (SPREAD,), choices=(SPREAD, SAME), silent=True),
                  Parameter("operations", "repeat until each operation was done this many times",
                            (OPERATIONS,), silent=True))
    metrics = tuple(Metric(name, "ns", word) for name, word in TITLES.items())
    subjects = subjects.pick("tambour", "tambour-libev", "tambour-libevent", "libev", "libevent",
                             "libuv", "asio", "muduo", "evpp")
    time_limit = 120.0
    # Without reset_ns, which for libev.so.4 on Tambour does not include the deferred work.
    decisive = ("arm_ns", "reset_whole_ns", "cancel_whole_ns", "expire_ns", "request_ns")
    quick = ({"timers": (10_000,), "operations": (10_000,), "rounds": 25},)
    full = ({"timers": (1000, 10_000, 100_000, 1_000_000)},
            {"timers": (100_000,), "deadlines": (SAME,)})

    def cost(self, cell):
        # The programs repeat a small set and wait each time for the last deadline.
        timers = cell.get("timers")
        repeats = max(1, cell.get("operations", OPERATIONS) // timers)
        beyond_cache = max(1.0, timers / 30_000) ** 0.5
        return self.iterations * (repeats + 2) * (0.0145 + timers * 1.2e-6 * beyond_cache) + (
            self.iterations * 2 * (0.0145 + timers * 1.5e-6 * beyond_cache))

    def arguments(self, cell):
        operations = cell.get("operations", OPERATIONS)
        return ["--operations", str(operations), "--deadlines", cell.get("deadlines", SPREAD),
                *super().arguments(cell)]

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("timers",)):
            for metric, title in TITLES.items():
                name, title = figures.heading(
                    f"timers-{metric.removesuffix('_ns').replace('_', '-')}",
                    f"{title.capitalize()}: one timer", shared)
                charts.append(Lines(name, "", title, metric, "timers", cells,
                                    "timers in the loop", "ns per operation"))
        return charts


SUITE = Timers()
