"""TLS: handshakes. The suites tls-bulk and tls-idle share its programs."""

from .. import subjects
from ..charts import Bars
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, TASKS, ServerSuite
from ..subjects import QUICK

COMMON = ("TLS 1.3 with X25519, AES-128-GCM and a P-256 certificate; clients of OpenSSL on another "
          "processor.")
NGINX = ("nginx serves a static file, without a log and without worker processes; the other "
         "subjects answer the same requests from memory. hitch decrypts for a plain server, whose "
         "processor time and memory do not count.")


class TlsSuite(ServerSuite):
    """A suite of the programs tls-<peer>, whose first argument is the workload."""

    program = "tls"
    workload = ""
    subjects = (*subjects.pick("tambour"), TASKS,
                *subjects.pick("libevent", "asio", "nginx", "hitch", "go"))
    quick_subjects = (*QUICK, "nginx")

    def arguments(self, cell):
        return [self.workload, *super().arguments(cell)[1:]]

    def bars(self, figures, metric, title, unit):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars(f"{self.name}-{metric.replace('_', '-')}", "", title, metric, figures.cells,
                     labels, unit)]


class Tls(TlsSuite):
    """Clients connect, complete the handshake and reset the connection."""

    name = "tls"
    workload = "handshakes"
    title = "TLS handshakes"
    what = ("Clients connect over TCP, complete the TLS handshake, in full or resumed with a "
            f"ticket, receive a new ticket, and reset the connection. {COMMON}")
    how = ("Processor time of the server per connection, with accepting it, and how many "
           "connections a second of processor time suffices for.")
    order = 90
    parameters = (Parameter("kind", "whether sessions are resumed", ("full", "resumed"),
                            choices=("full", "resumed"), format="{}"),
                  Parameter("connections", "concurrent handshakes", (16,),
                            format="{:,} at a time"),
                  Parameter("names", "certificates by name, of which clients ask for the last",
                            (1,), high=100_000, silent=True, format="{:,} names"),
                  Parameter("loops", "loops, each on a thread, all on one processor", (1,), high=8,
                            silent=True, format="{} loops"), MILLISECONDS)
    metrics = (Metric("handshake_us", "µs", "server's processor time per connection"),
               Metric("per_cpu_s", "1/s", "connections per second of processor time",
                      better="more"))
    quick = ({"milliseconds": (30,), "rounds": 8},)

    def unsupported(self, subject, cell):
        if cell.get("names") not in (None, 1) and subject.peer != "tambour":
            return "its program has one certificate"
        if cell.get("loops") not in (None, 1) and subject.peer != "tambour":
            return "its program has one loop"
        return super().unsupported(subject, cell)

    def arguments(self, cell):
        chosen = super().arguments(cell)
        for name in ("names", "loops"):
            if cell.get(name) is not None:
                chosen += [f"--{name}", str(cell.get(name))]
        return chosen

    def cost(self, cell):
        return 0.025 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        return self.bars(figures, "handshake_us", self.title, "µs of processor time")


SUITE = Tls()
