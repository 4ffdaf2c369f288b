"""Echo over TCP: ping-pong of messages of one size on many connections."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite

CHARTS = (("cpu", "processor time of the server", "server_cpu_ns", "ns per message", 1.0),
          ("bytes", "payload", "bytes_per_s", "MB per second", 1e-6))


class Throughput(ServerSuite):
    """Each client sends a message and waits for its echo."""

    name = "throughput"
    title = "Throughput, ping-pong"
    what = ("Clients in a process on another processor, the same for all subjects, each send a "
            "message over TCP and the next one after its echo.")
    how = ("Processor time of the server per message, which does not depend on whether client or "
           "server is the bottleneck; messages and payload bytes per second in both directions. "
           "The floor is hand-written epoll, iouring hand-written io_uring with multishot "
           "receives.")
    order = 25
    subjects = (*ServerSuite.subjects, *subjects.pick("iouring"), *subjects.OBSERVED)
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (1, 100), format="{:,} connections"),
                  Parameter("size", "bytes of a message", (64, 4096, 65536), high=1 << 28,
                            format="{:,} bytes"),
                  MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per message"),
               Metric("messages_per_s", "1/s", "messages per second", better="more"),
               Metric("bytes_per_s", "B/s", "bytes per second, both directions", better="more"))
    quick = ({"connections": (100,), "size": (64, 16384), "milliseconds": (40,), "rounds": 24},)
    full = ({"connections": (1, 10, 100, 1000), "size": (64, 1024, 4096, 16384, 65536, 1 << 20)},)

    def cost(self, cell):
        return 0.01 + cell.get("milliseconds") * 1.2e-3 + cell.get("connections") * 1e-4

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("size",)):
            whose = self.describe({"connections": shared["connections"]})
            for word, what, metric, unit, scale in CHARTS:
                name, title = figures.heading(f"throughput-{word}", f"{whose}: {what}", shared,
                                              ("connections",))
                charts.append(Lines(name, "", title, metric, "size", cells, "bytes of a message",
                                    unit, scale))
        return charts


SUITE = Throughput()
