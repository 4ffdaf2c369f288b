"""WebSockets: the memory of an open connection."""

from ..charts import Bars
from ..model import Metric, Parameter
from .websocket import DEFLATE, WebSocketSuite


class WebSocketIdle(WebSocketSuite):
    """Connections that are open and send nothing."""

    name = "websocket-idle"
    command = "idle"
    title = "Idle WebSockets"
    what = "WebSockets after the opening handshake, without a message."
    how = ("Anonymous resident memory that the server has gained, divided by the number of "
           "connections. The memory of the kernel is not included.")
    order = 98
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (5000,), format="{:,} connections"), DEFLATE)
    metrics = (Metric("connection_bytes", "bytes", "bytes per connection",
                      comparatives=("smaller", "larger")),)
    rounds = 6
    full = ({"deflate": ("no", "yes")},)

    def cost(self, cell):
        return 0.1 + cell.get("connections") * 3e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("websocket-idle", "", self.title, "connection_bytes", figures.cells, labels,
                     "bytes")]


SUITE = WebSocketIdle()
