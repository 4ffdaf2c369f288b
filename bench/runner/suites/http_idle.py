"""HTTP: the memory of an idle connection."""

from ..charts import Bars
from ..model import Metric, Parameter
from .http import HttpSuite


class HttpIdle(HttpSuite):
    """Connections that have made one request and stay open."""

    name = "http-idle"
    command = "idle"
    title = "Idle HTTP connections"
    what = "Connections that have each made one request for 64 bytes, and stay open."
    how = ("The proportional set size (PSS) that the server has gained 1.5 s after the last "
           "response, divided by the number of connections; and what it has kept 1.5 s after all "
           "were closed. The memory of the kernel is not included. After a burst, what a server "
           "needed for its requests may still be resident.")
    order = 94.5
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (6000,), format="{:,} connections"),
                  Parameter("burst", "requests at the same time", (100,), high=10_000,
                            format="{:,} requests at a time"))
    metrics = (Metric("connection_bytes", "bytes", "bytes per connection",
                      comparatives=("smaller", "larger")),
               Metric("kept_bytes", "bytes", "bytes kept after all were closed",
                      comparatives=("smaller", "larger")))
    rounds = 6
    quick = ()
    full = ({"burst": (100, 6000)},)

    def arguments(self, cell):
        return [*super().arguments(cell), "--size", "64"]

    def unsupported(self, subject, cell):
        if subject.peer == "floor":
            return "it has no memory for a connection"
        return super(HttpSuite, self).unsupported(subject, cell)

    def cost(self, cell):
        return 5 + cell.get("connections") * 2e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("http-idle", "", self.title, "connection_bytes", figures.cells, labels,
                     "bytes")]


SUITE = HttpIdle()
