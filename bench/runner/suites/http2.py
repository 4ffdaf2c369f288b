"""HTTP/2: the processor time of a request. The suite http2-urgent shares its programs."""

import shutil

from .. import subjects
from ..charts import Bars, Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS
from .http import HttpSuite

# What the programs of these peers lack. nginx answers an upload before it has received it.
MISSING = {
    "nginx": ("baseline", "json", "upload"),
    "nghttpd": ("baseline", "json"),
    "hyper": ("static",),
}
TRANSPORT = Parameter("transport", "HTTP/2 over TCP or TLS", ("h2c",), choices=("h2c", "h2"),
                      format="{}")


class Http2Suite(HttpSuite):
    """A suite of the programs http-<peer> over HTTP/2."""

    subjects = subjects.pick("tambour", "nginx", "h2o", "nghttpd", "go", "hyper")
    quick = ()

    def arguments(self, cell):
        words = super().arguments(cell)
        at = words.index("--transport")
        return [*words[:at], *(["--tls"] if words[at + 1] == "h2" else []), *words[at + 2:]]


class Http2(Http2Suite):
    """Requests on connections that stay open, several at a time."""

    name = "http2"
    command = "http2"
    title = "HTTP/2 requests"
    what = ("h2load repeats requests on open connections, up to 100 at a time on each: for a text "
            "of the given size, for the profiles baseline (the sum of two numbers in the query), "
            "static (a file) and json of HttpArena, or with an upload; over TCP (h2c) or over TLS "
            "1.3 with AES-128-GCM (h2).")
    how = ("Processor time of the server per request, and how many requests a second one core "
           "suffices for. A text is in the server's memory, except that nghttpd sends a file, "
           "and nginx one of more than 4,000 bytes; no logs, no worker processes. JSON is "
           "made for each request. h2load runs on another processor; its time to connect does not "
           "count.")
    order = 96
    parameters = (Parameter("profile", "what is requested", ("text",),
                            choices=("text", "baseline", "static", "json", "upload"), format="{}"),
                  TRANSPORT,
                  Parameter("size", "bytes of a response's body, or of an upload",
                            (64, 16384, 1 << 20), high=1 << 28, format="{:,} bytes"),
                  Parameter("connections", "connections", (10,), format="{:,} connections"),
                  Parameter("streams", "concurrent requests of a connection", (1, 10, 100),
                            high=100, format="{:,} streams"), MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per request"),
               Metric("requests_per_core_s", "1/s", "requests per second of processor time",
                      better="more"),
               Metric("requests_per_s", "1/s", "requests per second", better="more"))
    full = ({"transport": ("h2c", "h2")},
            {"profile": ("baseline", "static", "json"), "transport": ("h2c", "h2"),
             "size": (16384,), "streams": (100,)},
            {"profile": ("upload",), "transport": ("h2c", "h2"), "size": (16384, 1 << 20),
             "streams": (1,)})

    def unavailable(self):
        return super().unavailable() or (
            None if shutil.which("h2load") else "h2load is not installed")

    def unsupported(self, subject, cell):
        if cell.get("profile") in MISSING.get(subject.peer, ()):
            return f"its program does not support {cell.get('profile')}"
        return super(HttpSuite, self).unsupported(subject, cell)

    def cost(self, cell):
        return 0.1 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        charts = []
        others = [cell for cell in figures.cells if cell.get("profile") != "text"]
        for shared, cells in figures.groups(("size",)):
            if shared.get("profile") == "text":
                name, title = figures.heading("http2", self.title, shared, ())
                charts.append(Lines(name, "", title, "server_cpu_ns", "size", cells,
                                    "bytes of a response", "ns per request"))
        if others:
            labels = [self.describe(cell, omit=figures.constant()) for cell in others]
            charts.append(Bars("http2-profiles", "", f"{self.title}: profiles", "server_cpu_ns",
                               others, labels, "ns per request"))
        return charts


SUITE = Http2()
