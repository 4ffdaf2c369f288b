"""TLS: the memory of an idle connection."""

from ..model import Metric, Parameter
from .tls import COMMON, TlsSuite


class TlsIdle(TlsSuite):
    """Connections that have made one request and stay open."""

    name = "tls-idle"
    workload = "idle"
    title = "Idle TLS connections"
    what = f"Connections that have each received an answer of 1 KiB, and stay open. {COMMON}"
    how = ("Anonymous resident memory that the server has gained, divided by the number of "
           "connections. The memory of the kernel is not included.")
    order = 92
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (4000,), format="{:,} connections"),)
    metrics = (Metric("connection_bytes", "bytes", "bytes per connection",
                      comparatives=("smaller", "larger")),)
    rounds = 6
    quick = ({"connections": (200,), "rounds": 6},)

    def cost(self, cell):
        return 0.05 + cell.get("connections") * 4e-4

    def charts(self, figures):
        return self.bars(figures, "connection_bytes", self.title, "bytes")


SUITE = TlsIdle()
