"""memcached, as Debian ships it, on libevent and on the drop-in."""

import shutil

from ..charts import Bars
from ..model import Metric, Parameter, Subject
from ..servers import MILLISECONDS, ServerSuite
from .. import subjects


class Memcached(ServerSuite):
    """An existing server, whose event library is replaced without rebuilding it."""

    name = program = "memcached"
    title = "memcached"
    what = ("memcached of the system, started on libevent and, as Tambour, on the drop-in "
            "libevent_core-2.1.so.7. Clients on another processor get or set values of 100 bytes, "
            "one request at a time on each connection.")
    how = ("Processor time of memcached per operation, and operations per second. Each answer is "
           "verified. With one thread, memcached runs on the measured processor; with more, on all "
           "of them, which it shares with the clients.")
    order = 85
    parameters = (Parameter("operation", "what the clients do", ("get", "set"),
                            choices=("get", "set"), format="{}"),
                  Parameter("connections", "connections; clamped to the limit of open files",
                            (50, 1000), format="{:,} connections"),
                  Parameter("threads", "threads of memcached", (1, 2), format="{:,} threads"),
                  MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "processor time of memcached per operation"),
               Metric("operations_per_s", "1/s", "operations per second", better="more"))
    # In this suite, Tambour is the drop-in.
    subjects = (Subject("tambour", "tambour-libevent"), *subjects.pick("libevent"))
    quick = ({"operation": ("get",), "threads": (1,), "milliseconds": (40,), "rounds": 12},)

    def unavailable(self):
        return super().unavailable() or (
            None if shutil.which("memcached") else "memcached is not installed")

    def arguments(self, cell):
        return super().arguments(cell)[1:]  # The program has only one workload.

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3 + cell.get("connections") * 5e-5

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("memcached-cpu", "", f"{self.title}: processor time of the server",
                     "server_cpu_ns", figures.cells, labels, "ns per operation")]


SUITE = Memcached()
