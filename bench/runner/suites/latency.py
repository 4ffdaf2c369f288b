"""Round trips on one connection, sleeping and spinning."""

import os

from .. import subjects
from ..model import Metric, Parameter, Subject
from ..suite import Suite

SPINNING = Subject("tambour-spin", "tambour", (("TAMBOUR_BENCH_SPIN_US", "100"),))


class Latency(Suite):
    """One byte back and forth over TCP; the client is a process on another processor."""

    name = "latency"
    title = "Round trips on one connection"
    what = ("A client on another processor sends one byte over TCP and waits for it to come back; "
            "tambour-spin polls for up to 100 µs before it sleeps.")
    how = "Mean, median and 99th percentile over the round trips of a run."
    order = 30
    parameters = (Parameter("round-trips", "round trips in a run", (20_000,),
                            words="{:,} round trips"),)
    metrics = (Metric("round_trip_ns", "ns", "mean round trip"),
               Metric("round_trip_p50_ns", "ns", "median"),
               Metric("round_trip_p99_ns", "ns", "99th percentile"))
    subjects = (*subjects.pick("tambour"), SPINNING,
                *subjects.pick("tambour-uring", "floor", "epoll", "libev"))
    iterations = 1
    quoted = "median"
    quick = ({"rounds": 2},)

    def unavailable(self):
        return None if (os.cpu_count() or 1) > 1 else "a second processor is needed"

    def cost(self, cell):
        return 0.05 + cell.get("round-trips") * 8e-5


SUITE = Latency()
