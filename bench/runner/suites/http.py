"""HTTP: the processor time of a request. The suite http-latency shares its programs."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, TASKS, ServerSuite


KINDS = ("text", "json", "upload", "file", "tls")
# The kinds that the programs of these peers lack.
MISSING = {
    "floor": ("json", "upload", "file", "tls"),
    "libevent": ("file",),
    "tambour-libevent": ("file",),
    "boost": ("tls",),
    "node": ("file",),
    "nginx": ("json",),
    "hyper": ("file",),
}
PER_CORE = Metric("requests_per_core_s", "1/s", "requests per second of processor time",
                  better="more")


class HttpSuite(ServerSuite):
    """A suite of the programs http-<peer>, whose first argument is the command."""

    program = "http"
    command = ""
    subjects = (*subjects.pick("tambour"), TASKS,
                *subjects.pick("tambour-libevent", "floor", "libevent", "boost", "drogon", "nginx",
                               "h2o", "hyper", "go", "node"), *subjects.OBSERVED)
    quick_subjects = ("tambour", "libevent", "nginx")

    def arguments(self, cell):
        return [self.command, *super().arguments(cell)[1:]]


class Http(HttpSuite):
    """Requests on connections that stay open."""

    name = "http"
    command = "load"
    title = "HTTP requests"
    what = ("Clients repeat requests on open connections, one or several at a time: for a text of "
            "the given size, also over TLS, for JSON, for a file, or with an upload.")
    how = ("Processor time of the server per request, and how many requests a second one core "
           "suffices for. A text is in the server's memory, except that nginx sends a file of more "
           "than 4,000 bytes; files are sent from the disk. No logs, no worker processes. JSON is "
           "made for each request. Uploads are read and discarded; evhttp, Beast, h2o and Drogon "
           "collect them. The clients use bare system calls on another processor, and count "
           "bytes.")
    order = 93
    parameters = (Parameter("kind", "what is requested", ("text",), choices=KINDS, format="{}"),
                  Parameter("size", "bytes of a response's body, or of an upload",
                            (64, 16384, 1 << 20), high=1 << 28, format="{:,} bytes"),
                  Parameter("connections", "connections", (1, 100), format="{:,} connections"),
                  Parameter("pipelined", "requests that are sent at once", (1,), high=100,
                            format="{:,} at a time"), MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per request"), PER_CORE,
               Metric("requests_per_s", "1/s", "requests per second", better="more"))
    # evhttp takes about 20 µs for each request: 16 ms for 16 on each of 50 connections.
    quick = ({"size": (64,), "connections": (100,), "milliseconds": (20,), "rounds": 6},
             {"size": (64,), "connections": (50,), "pipelined": (16,), "milliseconds": (30,),
              "rounds": 6})
    full = ({"size": (64, 1024, 16384, 65536, 1 << 20), "connections": (1, 100, 1000)},
            {"size": (64,), "connections": (5000,)},
            {"size": (64,), "connections": (1, 100), "pipelined": (16,)},
            {"kind": ("json",), "size": (1024,), "connections": (100,)},
            {"kind": ("upload",), "size": (65536, 1 << 20), "connections": (100,)},
            {"kind": ("file",), "size": (1024, 65536, 1 << 20), "connections": (100,)},
            {"kind": ("tls",), "size": (64, 65536), "connections": (100,)})

    def unsupported(self, subject, cell):
        if cell.get("kind") in MISSING.get(subject.peer, ()):
            return f"its program does not support {cell.get('kind')}"
        return super().unsupported(subject, cell)

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
