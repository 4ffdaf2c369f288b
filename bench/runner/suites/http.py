"""HTTP: the processor time of a request."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, TASKS, ServerSuite
from ..subjects import QUICK


class Http(ServerSuite):
    """GET requests on connections that stay open."""

    name = "http"
    program = "http"
    title = "HTTP requests"
    what = ("Clients repeat GET requests on open connections, one or several at a time, and "
            "receive responses of the given size.")
    how = ("Processor time of the server per request. nginx serves a static file, without a log "
           "and without worker processes; the other subjects answer from memory. The clients use "
           "bare system calls on another processor, and count bytes.")
    order = 93
    subjects = (*subjects.pick("tambour"), TASKS, *subjects.pick("libevent", "nginx"))
    quick_subjects = (*QUICK, "nginx")
    parameters = (Parameter("size", "bytes of a response's body", (64, 16384, 1 << 20),
                            high=1 << 28, format="{:,} bytes"),
                  Parameter("connections", "connections", (1, 100), format="{:,} connections"),
                  Parameter("pipelined", "requests that are sent at once", (1,), high=100,
                            format="{:,} at a time"), MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per request"),
               Metric("requests_per_s", "1/s", "requests per second", better="more"))
    quick = ({"size": (64,), "connections": (100,), "pipelined": (1, 16), "milliseconds": (20,),
              "rounds": 6},)
    full = ({"size": (64, 1024, 16384, 65536, 1 << 20), "connections": (1, 100, 1000)},
            {"size": (64,), "connections": (1, 100), "pipelined": (16,)})

    def arguments(self, cell):
        return ["get", *super().arguments(cell)[1:]]

    def cost(self, cell):
        return 0.025 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("size",)):
            name, title = figures.heading("http", self.title, shared, ())
            charts.append(Lines(name, "", title, "server_cpu_ns", "size", cells,
                                "bytes of a response", "ns per request"))
        return charts


SUITE = Http()
