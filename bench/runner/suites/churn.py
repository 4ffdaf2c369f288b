"""Connections that come, are served once, and go."""

from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite


class Churn(ServerSuite):
    """Accept, echo one message, close: what a connection costs."""

    name = "churn"
    title = "Connections served once"
    what = ("A client on another processor opens connections over TCP, sends 64 bytes on each, "
            "waits until they have come back, and closes it; so many are open at a time.")
    how = ("Connections per second, which on two processors is mostly what the client can do, "
           "because the kernel makes connections in the time of who connects; and the processor "
           "time of the server for each connection, which is what the server can do.")
    order = 60
    parameters = (Parameter("open", "connections that are open at a time", (32,), high=4000,
                            words="{:,} open at a time"), MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per connection"),
               Metric("connections_per_s", "1/s", "connections per second", better="more"))
    quick = ({"milliseconds": (200,), "rounds": 3},)
    full = ({"open": (1, 32, 1000), "milliseconds": (1000,)},)

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        return [Bars("churn", "", f"{self.title}: processor time of the server", "server_cpu_ns",
                     figures.cells, [self.describe(cell, but=figures.constant())
                                     for cell in figures.cells], "ns per connection")]


SUITE = Churn()
