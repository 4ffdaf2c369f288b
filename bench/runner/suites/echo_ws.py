"""HttpArena's profile echo-ws."""

from ..model import Metric, Parameter
from ..charts import Bars
from ..servers import MILLISECONDS
from .websocket import COMMON, WebSocketSuite


class EchoWs(WebSocketSuite):
    """A message of five bytes in flight on each of many connections."""

    name = "echo-ws"
    command = "echo"
    title = "HttpArena's profile echo-ws"
    what = ("As HttpArena's profile echo-ws: each of 512, 4,096 or 16,384 connections sends a text "
            f"of 5 bytes, waits for its echo, and repeats. {COMMON}")
    how = ("Processor time of the server per message. HttpArena publishes messages per second on "
           "many processors; its 16,384 connections need `--connections 16384`, and a higher limit "
           "of open files than is usual.")
    order = 99
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (512, 4096), format="{:,} connections"),
                  MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per message"),
               Metric("messages_per_s", "1/s", "messages per second", better="more"))
    full = ({"connections": (512, 4096)},)

    def arguments(self, cell):
        return [*super().arguments(cell), "--size", "5", "--in-flight", "1", "--deflate", "no"]

    def cost(self, cell):
        return 0.1 + cell.get("milliseconds") * 1.2e-3 + cell.get("connections") * 1e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("echo-ws", "", f"{self.title}: processor time of the server",
                     "server_cpu_ns", figures.cells, labels, "ns per message")]


SUITE = EchoWs()
