"""A reverse proxy: the processor time of a request that it passes on."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite


class HttpProxy(ServerSuite):
    """Requests through a proxy, on connections that stay open on both sides."""

    name = "http-proxy"
    program = "http_proxy"
    title = "HTTP requests through a reverse proxy"
    what = ("Clients repeat requests on open connections to a proxy, which passes them on to one "
            "upstream and returns its responses.")
    how = ("Processor time of the proxy per request. One process without workers; connections to "
           "the upstream stay open; Host, X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host and "
           "Via are set. Clients and upstream use bare system calls on another processor.")
    order = 95
    subjects = subjects.pick("tambour", "nginx")
    quick_subjects = ("tambour", "nginx")
    parameters = (Parameter("size", "bytes of a response's body", (64, 16384, 1 << 20),
                            high=1 << 28, format="{:,} bytes"),
                  Parameter("connections", "connections", (1, 100), format="{:,} connections"),
                  MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "proxy's processor time per request"),
               Metric("requests_per_s", "1/s", "requests per second", better="more"))
    # The quick set has no time left.
    quick = ()
    full = ({"size": (64, 16384, 1 << 20), "connections": (1, 100)},)

    def arguments(self, cell):
        return ["load", *super().arguments(cell)[1:]]

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("size",)):
            name, title = figures.heading("http-proxy", self.title, shared, ())
            charts.append(Lines(name, "", title, "server_cpu_ns", "size", cells,
                                "bytes of a response", "ns per request"))
        return charts


SUITE = HttpProxy()
