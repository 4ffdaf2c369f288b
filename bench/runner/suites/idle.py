"""Idle connections: the memory they use, and what they cost the active ones."""

from ..charts import Bars
from ..model import Metric, NotMeasured, Parameter
from ..servers import MILLISECONDS, ServerSuite


class Idle(ServerSuite):
    """Thousands of connections, a few of them active."""

    name = "idle"
    title = "Idle connections"
    what = ("Many TCP connections, each of which has exchanged 64 bytes; then a few of them send "
            "messages as fast as possible, first without and then with the idle ones.")
    how = ("Memory that the server has from malloc(3) per connection, overhead included, and its "
           "resident memory; messages per second and processor time of the server per message, "
           "with and without the idle connections.")
    order = 70
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (9000,), format="{:,} connections"),
                  Parameter("active", "active connections among them", (1000,),
                            format="{:,} active"), MILLISECONDS)
    metrics = (Metric("heap_bytes_per_connection", "bytes", "heap bytes per connection",
                      comparatives=("smaller", "larger")),
               Metric("rss_bytes_per_connection", "bytes", "resident bytes per connection",
                      comparatives=("smaller", "larger")),
               Metric("server_cpu_ns", "ns", "processor time per message, with idle ones"),
               Metric("alone_cpu_ns", "ns", "processor time per message, without idle ones"),
               Metric("messages_per_s", "1/s", "messages per second, with idle ones",
                      better="more"),
               Metric("alone_per_s", "1/s", "messages per second, without idle ones",
                      better="more"))
    rounds = 6
    quick = ({"connections": (1000,), "active": (100,), "milliseconds": (20,), "rounds": 8},)

    def adjust(self, params, limits):
        params = super().adjust(params, limits)
        if params["active"] > params["connections"]:
            raise NotMeasured(f"{params['active']:,} active are more than "
                              f"{params['connections']:,} connections")
        return params

    def cost(self, cell):
        return 0.03 + cell.get("milliseconds") * 2.4e-3 + cell.get("connections") * 2e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("idle-heap", "", "Memory of an idle connection", "heap_bytes_per_connection",
                     figures.cells, labels, "bytes of heap")]


SUITE = Idle()
