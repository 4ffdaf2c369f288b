"""Connections that do nothing: what they hold, and what they cost those that do something."""

from ..charts import Bars
from ..model import Left, Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite


class Idle(ServerSuite):
    """Thousands of connections, of which a few are active."""

    name = "idle"
    title = "Idle connections"
    what = ("Many TCP connections, each of which has sent 64 bytes and had them back; then only "
            "a few go on, as fast as they can, first alone and then with the idle ones beside.")
    how = ("What the server has from malloc for each connection, overhead included, and what of "
           "its memory is resident; the rate among idle connections and alone, and the processor "
           "time of the server for a message in both.")
    order = 70
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (9000,), words="{:,} connections"),
                  Parameter("active", "connections that are active, among them", (1000,),
                            words="{:,} active"), MILLISECONDS)
    metrics = (Metric("heap_bytes_per_connection", "bytes", "heap bytes per connection"),
               Metric("rss_bytes_per_connection", "bytes", "resident bytes per connection"),
               Metric("server_cpu_ns", "ns", "processor time per message, among idle ones"),
               Metric("alone_cpu_ns", "ns", "processor time per message, active ones alone"),
               Metric("messages_per_s", "1/s", "messages per second, among idle ones",
                      better="more"),
               Metric("alone_per_s", "1/s", "messages per second, active ones alone",
                      better="more"))
    rounds = 3
    quick = ({"connections": (1000,), "active": (100,), "milliseconds": (200,)},)

    def adjust(self, params, limits):
        params = super().adjust(params, limits)
        if params["active"] > params["connections"]:
            raise Left(f"{params['active']:,} active are more than {params['connections']:,} "
                       "connections")
        return params

    def cost(self, cell):
        return 0.1 + cell.get("milliseconds") * 2.4e-3 + cell.get("connections") * 2e-4

    def charts(self, figures):
        labels = [self.describe(cell, but=figures.constant()) for cell in figures.cells]
        return [Bars("idle-heap", "", "Memory of an idle connection", "heap_bytes_per_connection",
                     figures.cells, labels, "bytes of heap")]


SUITE = Idle()
