"""Timers: arm, reset, cancel and expire many of them."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite

WORDS = {"arm_ns": "arm", "reset_ns": "reset", "cancel_ns": "cancel", "expire_ns": "expire",
         "reset_whole_ns": "reset once, in all", "cancel_whole_ns": "cancel, in all"}


class Timers(Suite):
    """The cost of one operation on one timer, with N of them in the loop."""

    name = "timers"
    title = "Timers"
    what = ("N idle timeouts are armed, half to all of their minute left; each is pushed back to "
            "the whole of it in random order, each is cancelled; "
            "then N are armed to expire at once, and do.")
    how = ("Each figure is a time per operation, one turn of the loop for each N included; a run "
           "does two iterations and the second counts. Tambour moves a timer in its heap only "
           "when its former deadline comes up, which is paid once, however often the timer was "
           "pushed back before: \"in all\" is with that, for a timer that is pushed back once.")
    order = 20
    parameters = (Parameter("timers", "timers in the loop", (1000, 10_000, 100_000)),)
    metrics = tuple(Metric(name, "ns", word) for name, word in WORDS.items())
    subjects = subjects.pick("tambour", "tambour-libev", "libev", "libevent", "libuv", "asio",
                             "muduo", "evpp")
    time_limit = 120.0
    quick = ({"timers": (10_000, 100_000), "rounds": 3},)
    full = ({"timers": (1000, 10_000, 100_000, 1_000_000)},)

    def cost(self, cell):
        # The programs repeat a small set until each operation was done 100,000 times, and wait
        # each time for the last deadline.
        timers = cell.get("timers")
        repeats = max(1, 100_000 // timers)
        beyond_cache = max(1.0, timers / 30_000) ** 0.5
        return 0.02 + self.iterations * repeats * (0.0145 + timers * 1.2e-6 * beyond_cache) + (
            self.iterations * 2 * (0.0145 + timers * 1.5e-6 * beyond_cache))

    def charts(self, figures):
        return [Lines(f"timers-{name.removesuffix('_ns').replace('_', '-')}", "",
                      f"{word.capitalize()}: one timer", name, "timers",
                      figures.cells, "timers in the loop", "ns per operation")
                for name, word in WORDS.items()]


SUITE = Timers()
