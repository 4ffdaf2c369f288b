"""DNS: lookups of host names."""

from .. import subjects
from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import need_two_processors
from ..suite import Suite


class Dns(Suite):
    """Looks up the addresses of hosts, with the configuration of the system."""

    name = "dns"
    title = "DNS lookups"
    what = ("Looks up IPv4 and IPv6 addresses of different names, or of the same name again and "
            "again, one or a hundred at a time. A process on another processor answers every "
            "question. libevent is evdns; libuv and asio call getaddrinfo(3) on threads. Only "
            "Tambour has a cache; libevent does not sort the addresses (RFC 6724). The floor "
            "sends and receives the packets, and does nothing else.")
    how = ("Processor time of the process that looks up, with all of its threads, per lookup, and "
           "how many lookups a second of processor time suffices for. Each program has a network "
           "and an /etc/resolv.conf of its own.")
    order = 96
    parameters = (Parameter("names", "which names are looked up", ("different", "same"),
                            choices=("different", "same"), format="{} names"),
                  Parameter("in-flight", "concurrent lookups", (1, 100), high=10_000,
                            format="{:,} at a time"),
                  Parameter("lookups", "lookups of a run", (5000,), high=10_000_000,
                            format="{:,} lookups"))
    metrics = (Metric("lookup_ns", "ns", "processor time per lookup"),
               Metric("lookups_per_cpu_s", "1/s", "lookups per second of processor time",
                      better="more"))
    subjects = subjects.pick("tambour", "tambour-uring", "floor", "c-ares", "libevent",
                             "libuv", "asio")
    iterations = 1
    quoted = "median"
    two_ended = True
    quick = ()

    def unavailable(self):
        return need_two_processors()

    def cost(self, cell):
        return 0.1 + cell.get("lookups") * 1.5e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("dns-lookup", "", self.title, "lookup_ns", figures.cells, labels,
                     "ns of processor time")]


SUITE = Dns()
