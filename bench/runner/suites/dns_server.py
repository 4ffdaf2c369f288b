"""DNS servers under dnsperf."""

import shutil

from .. import subjects
from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite


class DnsServer(ServerSuite):
    """An authoritative server with 10,000 names."""

    name = "dns-server"
    program = "dns_server"
    title = "DNS servers"
    what = ("A server with 10,000 names answers the queries of dnsperf over UDP, or over 16 TCP "
            "connections; nsd and unbound have one process or thread.")
    how = ("Processor time of the server, with all of its processes, per query, and how many "
           "queries a second of processor time suffices for. dnsperf runs on another processor.")
    order = 97
    parameters = (Parameter("transport", "how queries are sent", ("udp", "tcp"),
                            choices=("udp", "tcp"), format="{}"), MILLISECONDS)
    metrics = (Metric("query_ns", "ns", "server's processor time per query"),
               Metric("queries_per_cpu_s", "1/s", "queries per second of processor time",
                      better="more"))
    subjects = subjects.pick("tambour", "nsd", "unbound")
    quick = ()

    def unavailable(self):
        return super().unavailable() or (
            None if shutil.which("dnsperf") else "dnsperf is not installed")

    def arguments(self, cell):
        return super().arguments(cell)[1:]  # The programs have only one workload.

    def cost(self, cell):
        return 0.3 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("dns-server-query", "", self.title, "query_ns", figures.cells, labels,
                     "ns of processor time")]


SUITE = DnsServer()
