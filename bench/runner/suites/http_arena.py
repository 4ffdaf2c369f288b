"""HttpArena's profiles of HTTP/1.1."""

from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, TASKS
from .http import PER_CORE, HttpSuite

PROFILES = ("baseline", "pipelined", "limited-conn", "json", "json-comp", "upload", "static")
# What the programs of these peers lack.
MISSING = {
    "floor": ("baseline", "limited-conn", "json", "json-comp", "upload", "static"),
    "libevent": ("json-comp", "static"),
    "tambour-libevent": ("json-comp", "static"),
    "boost": ("json-comp",),
    "node": ("static",),
    "nginx": ("baseline", "limited-conn", "json", "json-comp", "upload"),
    "hyper": ("static",),
}


class HttpArena(HttpSuite):
    """Mixes of requests that HttpArena defines."""

    name = "http-arena"
    command = "arena"
    title = "HttpArena's profiles"
    # The program for tasks differs in none of these services.
    subjects = tuple(subject for subject in HttpSuite.subjects if subject is not TASKS)
    what = ("The workloads of HttpArena with these names: baseline (the sum of two numbers in the "
            "query and one in the body, which a third of the requests have with a length and a "
            "third chunked), pipelined (16 requests at a time for \"ok\"), limited-conn (baseline, "
            "10 requests per connection), json (1 to 50 items with a computed total), json-comp "
            "(25 to 50 items, compressed with gzip), upload (500 KiB) and static (20 files of 3 to "
            "300 KiB).")
    how = ("Processor time of the server per request, and how many requests a second one core "
           "suffices for. HttpArena publishes requests per second on 64 cores. Each connection "
           "makes all kinds of requests of a profile in order. Files are not compressed; items "
           "are, by all servers, at level 5, except by Drogon, which has a level of its own.")
    order = 95
    parameters = (Parameter("profile", "what is requested", ("baseline", "json"),
                            choices=PROFILES, format="{}"),
                  Parameter("connections", "connections; clamped to the limit of open files",
                            (512,), format="{:,} connections"), MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per request"), PER_CORE,
               Metric("requests_per_s", "1/s", "requests per second", better="more"))
    quick = ()
    full = ({"profile": PROFILES, "connections": (512, 4096)},)

    def unsupported(self, subject, cell):
        if cell.get("profile") in MISSING.get(subject.peer, ()):
            return f"its program does not support {cell.get('profile')}"
        return super(HttpSuite, self).unsupported(subject, cell)

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3 + cell.get("connections") * 1e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("http-arena", "", self.title, PER_CORE.name, figures.cells, labels,
                     "requests per second of processor time")]


SUITE = HttpArena()
