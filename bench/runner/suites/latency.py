"""Round trips on one connection, with blocking and spinning ends."""

from .. import subjects
from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import PEERS, SPINNING, TASKS, ServerSuite


class Latency(ServerSuite):
    """One byte back and forth over TCP; the client is a process on another processor."""

    name = "latency"
    title = "Round trips on one connection"
    what = ("A client on another processor sends one byte over TCP and waits for its echo, either "
            "blocking or spinning; tambour-spin polls for up to 100 µs before it blocks.")
    how = ("Mean and exact percentiles over all round trips of a run. Most of a round trip is the "
           "kernel waking an idle processor.")
    order = 50
    parameters = (Parameter("round-trips", "round trips in a run", (20_000,),
                            format="{:,} round trips"),
                  Parameter("client", "blocks until the answer arrives, or spins",
                            ("sleeps", "spins"), choices=("sleeps", "spins")))
    metrics = (Metric("round_trip_ns", "ns", "mean round trip"),
               Metric("p50_ns", "ns", "median"),
               Metric("p99_ns", "ns", "99th percentile"),
               Metric("p999_ns", "ns", "99.9th percentile"),
               Metric("max_ns", "ns", "longest"))
    subjects = (*subjects.pick("tambour"), SPINNING, TASKS, *subjects.pick("tambour-uring"), *PEERS)
    decisive = ("p50_ns",)
    quick = ({"round-trips": (1000,), "client": ("sleeps",), "rounds": 20},)
    quick_subjects = (*ServerSuite.quick_subjects, "tambour-spin")
    full = ({"round-trips": (50_000,)},)

    def cost(self, cell):
        return 0.05 + cell.get("round-trips") * 6e-5

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("client",)):
            labels = [self.describe({"client": each["client"]}) for each in cells]
            name, title = figures.heading("latency", "Median round trip", shared)
            charts.append(Bars(name, "", title, "p50_ns", cells, labels, "ns"))
        return charts


SUITE = Latency()
