"""TLS: the processor time of a byte."""

from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS
from .tls import COMMON, NGINX, TlsSuite


class TlsBulk(TlsSuite):
    """Downloads on open connections."""

    name = "tls-bulk"
    workload = "bulk"
    title = "TLS downloads"
    what = ("Each client repeats a request on its connection; the answer has the given size. "
            f"{COMMON}")
    how = f"Processor time of the server per byte of the answers' bodies. {NGINX}"
    order = 91
    parameters = (Parameter("size", "bytes of an answer", (1024, 16384, 1 << 20), high=1 << 28,
                            format="{:,} bytes"),
                  Parameter("connections", "connections", (10,), format="{:,} connections"),
                  MILLISECONDS)
    metrics = (Metric("byte_ns", "ns", "server's processor time per byte"),
               Metric("bytes_per_s", "B/s", "bytes per second", better="more"))
    quick = ({"milliseconds": (20,), "rounds": 8},)

    def cost(self, cell):
        return 0.025 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("size",)):
            name, title = figures.heading("tls-bulk", self.title, shared, ())
            charts.append(Lines(name, "", title, "byte_ns", "size", cells, "bytes of an answer",
                                "ns per byte"))
        return charts


SUITE = TlsBulk()
