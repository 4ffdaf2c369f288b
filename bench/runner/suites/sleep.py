"""How exactly a loop sleeps."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite


class Sleep(Suite):
    """One timer at a time in an idle process; the floor is a bare timerfd of that length."""

    name = "sleep"
    title = "Sleeping"
    what = "One timer at a time: how long after its deadline its callback runs."
    how = ("Median and 99th percentile over the sleeps of a run, with what each library has for "
           "exact timers: Tambour's timer_slack of 1 ns, libevent's flag for precise timers, the "
           "timerfd that asio, muduo and the floor use anyway; libev and libuv count milliseconds. "
           "The kernel's wake-up is in every figure; a timer that is early is an error.")
    order = 40
    parameters = (Parameter("length-us", "length of a sleep in µs", (100, 1000, 10_000),
                            high=1_000_000, words="{:,} µs each"),
                  Parameter("sleeps", "sleeps in a run", (200,), high=1_000_000))
    metrics = (Metric("late_ns", "ns", "median lateness"),
               Metric("late_p99_ns", "ns", "99th percentile of lateness"))
    subjects = subjects.pick("tambour", "tambour-epoll", "tambour-uring", "tambour-poll",
                             "tambour-select", "floor", "libev", "libevent", "libuv", "asio",
                             "muduo")
    rounds = 3
    iterations = 1
    quoted = "median"
    quick = ({"length-us": (1000,)},)

    def cost(self, cell):
        return 0.02 + cell.get("sleeps") * (cell.get("length-us") + 100) * 1e-6

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("length-us",)):
            name, title = figures.heading("sleep-late", "Lateness of a timer", shared)
            charts.append(Lines(name, "", title, "late_ns", "length-us", cells, "length in µs",
                                "ns late"))
        return charts


SUITE = Sleep()
