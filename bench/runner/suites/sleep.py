"""The precision of timers."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite


class Sleep(Suite):
    """One timer at a time in an idle process; the floor is a bare timerfd."""

    name = "sleep"
    title = "Timer precision"
    what = "One timer at a time: how long after its deadline its callback is invoked."
    how = ("Median and 99th percentile over the timers of a run, each library in its most precise "
           "mode: Tambour with a timer_slack of 1 ns, libevent with its flag for precise timers; "
           "asio, muduo and the floor use timerfd, libev and libuv count milliseconds. Every value "
           "includes the kernel's wakeup; a timer that expires early is an error.")
    order = 40
    parameters = (Parameter("length-us", "length of a timer in µs", (100, 1000, 10_000),
                            high=1_000_000, format="{:,} µs each"),
                  Parameter("sleeps", "timers in a run", (200,), high=1_000_000))
    metrics = (Metric("late_ns", "ns", "median lateness", comparatives=("less late", "later")),
               Metric("late_p99_ns", "ns", "99th percentile of lateness"))
    subjects = subjects.pick("tambour", "tambour-epoll", "tambour-uring", "tambour-poll",
                             "tambour-select", "floor", "libev", "libevent", "libuv", "asio",
                             "muduo")
    rounds = 6
    iterations = 1
    quoted = "median"
    quick = ({"length-us": (1000,), "sleeps": (30,), "rounds": 25},)

    def cost(self, cell):
        return 0.005 + cell.get("sleeps") * (cell.get("length-us") + 100) * 1e-6

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("length-us",)):
            name, title = figures.heading("sleep-late", "Lateness of a timer", shared)
            charts.append(Lines(name, "", title, "late_ns", "length-us", cells, "length in µs",
                                "ns late"))
        return charts


SUITE = Sleep()
