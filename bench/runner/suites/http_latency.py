"""HTTP: the latency of requests at a fixed rate."""

from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import MILLISECONDS
from .http import HttpSuite


class HttpLatency(HttpSuite):
    """Requests that are due at fixed times, whatever the server does."""

    name = "http-latency"
    command = "latency"
    title = "Latency of HTTP requests"
    what = ("Requests for a text are due at a fixed rate; each is sent on the connection that has "
            "been unused for longest.")
    how = ("The time from when a request was due until its response has arrived: one that has to "
           "wait, because the server is late, counts its wait. Exact percentiles. The client "
           "spins on another processor.")
    order = 94
    parameters = (Parameter("rate", "requests per second", (5000,), format="{:,} per second"),
                  Parameter("size", "bytes of a response's body", (64,), high=1 << 28,
                            format="{:,} bytes"),
                  Parameter("connections", "connections", (100,), format="{:,} connections"),
                  MILLISECONDS)
    metrics = (Metric("p50_ns", "ns", "median"),
               Metric("p99_ns", "ns", "99th percentile"),
               Metric("p999_ns", "ns", "99.9th percentile"),
               Metric("max_ns", "ns", "longest"))
    decisive = ("p50_ns",)
    # Percentiles of a run as short as those of the quick set say nothing.
    quick = ()
    full = ({"rate": (5000, 20_000), "milliseconds": (1000,)},)

    def cost(self, cell):
        return 0.025 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("http-latency", "", "Median latency of HTTP requests", "p50_ns",
                     figures.cells, labels, "ns")]


SUITE = HttpLatency()
