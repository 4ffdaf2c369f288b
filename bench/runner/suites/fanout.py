"""One message to thousands of connections."""

from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import DROP_IN, PEERS, ServerSuite
from .. import subjects


class Fanout(ServerSuite):
    """A chat room: each message is sent to all connections."""

    name = "fanout"
    title = "One message to all connections"
    what = ("The server sends a message that it receives on one TCP connection to all of them; the "
            "next message follows when all have received it. The clients are one process on "
            "another processor.")
    how = "Processor time of the server per delivery, and the time until all have received it."
    order = 80
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (5000,), format="{:,} connections"),
                  Parameter("size", "bytes of a message", (64, 4096), high=1 << 20,
                            format="{:,} bytes"),
                  Parameter("messages", "messages, one after another", (20,), high=1_000_000))
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per delivery"),
               Metric("all_us", "µs", "until all have received it"))
    subjects = (*subjects.pick("tambour"), *DROP_IN, *PEERS)
    rounds = 6
    quick = ({"connections": (300,), "size": (64,), "messages": (20,), "rounds": 14},)

    def cost(self, cell):
        return 0.08 + cell.get("connections") * (1e-4 + cell.get("messages") * 7e-6)

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("fanout-cpu", "", f"{self.title}: processor time of the server",
                     "server_cpu_ns", figures.cells, labels, "ns per delivery")]


SUITE = Fanout()
