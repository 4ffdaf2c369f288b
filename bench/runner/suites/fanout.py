"""One message to thousands of connections."""

from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import PEERS, ServerSuite
from .. import subjects


class Fanout(ServerSuite):
    """A chat room: what one says, all hear."""

    name = "fanout"
    title = "One message to all connections"
    what = ("A message that comes on one TCP connection is sent to all of them; the next when all "
            "have it. The clients are a process on another processor.")
    how = ("Time until all have it, and the processor time of the server for each that gets it.")
    order = 80
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (5000,), words="{:,} connections"),
                  Parameter("size", "bytes of a message", (64, 4096), high=1 << 20,
                            words="{:,} bytes"),
                  Parameter("messages", "messages, one after the other", (20,), high=1_000_000))
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per delivery"),
               Metric("all_us", "µs", "until all have it"))
    subjects = (*subjects.pick("tambour"), *PEERS)
    rounds = 3
    quick = ({"connections": (1000,), "size": (64,), "messages": (10,)},)

    def cost(self, cell):
        return 0.1 + cell.get("connections") * (1e-4 + cell.get("messages") * 7e-6)

    def charts(self, figures):
        labels = [self.describe(cell, but=figures.constant()) for cell in figures.cells]
        return [Bars("fanout-cpu", "", f"{self.title}: processor time of the server",
                     "server_cpu_ns", figures.cells, labels, "ns per delivery")]


SUITE = Fanout()
