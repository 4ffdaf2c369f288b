"""WebSockets: one message to thousands of connections."""

from ..charts import Bars
from ..model import Metric, Parameter
from .websocket import COMMON, DEFLATE, WebSocketSuite


class WebSocketBroadcast(WebSocketSuite):
    """A chat room: each message is sent to all connections."""

    name = "websocket-broadcast"
    command = "broadcast"
    title = "One WebSocket message to all connections"
    what = ("The server sends a message that it receives on one WebSocket to all of them; the next "
            f"message follows when all have received it. {COMMON}")
    how = ("Processor time of the server per delivery, and the time until all have received it. "
           "The suite fanout does the same over TCP.")
    order = 97
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (1000, 5000), format="{:,} connections"),
                  Parameter("size", "bytes of a message", (64,), high=1 << 20,
                            format="{:,} bytes"),
                  Parameter("messages", "messages, one after another", (20,), high=1_000_000),
                  DEFLATE)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per delivery"),
               Metric("all_us", "µs", "until all have received it"))
    rounds = 6
    full = ({"connections": (1000, 5000), "size": (64, 4096)},
            {"connections": (1000,), "size": (4096,), "deflate": ("yes",)})

    def cost(self, cell):
        return 0.1 + cell.get("connections") * (2e-4 + cell.get("messages") * 1e-5)

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("websocket-broadcast-cpu", "", f"{self.title}: processor time of the server",
                     "server_cpu_ns", figures.cells, labels, "ns per delivery")]


SUITE = WebSocketBroadcast()
