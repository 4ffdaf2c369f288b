"""Connections that are opened, served once and closed."""

from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite


class Churn(ServerSuite):
    """Accept, echo one message, close: the cost of a connection."""

    name = "churn"
    title = "Connections served once"
    what = ("A client on another processor opens TCP connections, sends 64 bytes on each, waits "
            "for the echo and closes it, with a given number of connections open at a time.")
    how = ("Processor time of the server per connection; and connections per second, which on two "
           "processors is mostly limited by the client, because the kernel does most of the work "
           "of a connection in the process that connects.")
    order = 60
    parameters = (Parameter("open", "connections that are open at a time", (32,), high=4000,
                            format="{:,} open at a time"), MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per connection"),
               Metric("connections_per_s", "1/s", "connections per second", better="more"))
    quick = ({"milliseconds": (50,), "rounds": 25},)
    full = ({"open": (1, 32, 1000), "milliseconds": (1000,)},)

    def cost(self, cell):
        return 0.01 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        return [Bars("churn", "", f"{self.title}: processor time of the server", "server_cpu_ns",
                     figures.cells, [self.describe(cell, omit=figures.constant())
                                     for cell in figures.cells], "ns per connection")]


SUITE = Churn()
