"""HTTP/2: an urgent response during downloads on the same connection."""

from ..charts import Bars
from ..model import Metric, Parameter
from .http2 import TRANSPORT, Http2Suite


class Http2Urgent(Http2Suite):
    """The time to the first byte of an urgent response."""

    name = "http2-urgent"
    command = "urgent"
    title = "Urgent requests of HTTP/2"
    what = ("A client reads 100 MB a second of several downloads on one connection, with a receive "
            "buffer of 256 KiB, and requests 64 bytes on the same connection, with the highest "
            "urgency (RFC 9218) and the highest weight (RFC 7540).")
    how = ("Time until the response begins, and the bytes of the downloads that arrive before it: "
           "the median of the urgent requests of a sample. Servers that do not know either kind "
           "of priority share the connection among all responses.")
    order = 96.5
    parameters = (TRANSPORT,
                  Parameter("size", "bytes of a download", (1 << 24,), high=1 << 28,
                            format="{:,} bytes"),
                  Parameter("downloads", "downloads that are in progress", (4,), high=50,
                            format="{:,} downloads"),
                  Parameter("probes", "urgent requests of a sample", (20,), high=1000,
                            format="{:,} urgent requests"))
    metrics = (Metric("first_byte_us", "µs", "time to the first byte"),
               Metric("bytes_ahead", "bytes", "bytes of downloads before the response",
                      comparatives=("fewer", "more")))
    full = ({"transport": ("h2c", "h2")},)

    def cost(self, cell):
        return 0.5 + cell.get("probes") * 0.03

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        charts = []
        for metric in self.metrics:
            # The whole title is wider than the chart.
            quantity = metric.title.split()[0]
            label = metric.title if quantity == metric.unit else f"{metric.title} ({metric.unit})"
            charts.append(Bars(f"http2-urgent-{metric.name.replace('_', '-')}", "",
                               f"{self.title}: {quantity}", metric.name, figures.cells, labels,
                               label))
        return charts


SUITE = Http2Urgent()
