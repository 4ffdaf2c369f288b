"""Servers with several loops: what a second loop costs."""

from .. import subjects
from ..charts import Bars
from ..formatting import quantity
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, ServerSuite

# The workload of the server programs and its arguments.
WORKLOADS = {"echo": ("throughput", "--connections", "100", "--size", "64"),
             "churn": ("churn", "--open", "32")}
RATES = {"echo": "messages_per_s", "churn": "connections_per_s"}


class Scaling(ServerSuite):
    """A loop per thread: the cost of sharing between the loops of a server."""

    name = program = "scaling"
    title = "Servers with several loops"
    what = ("A server with one or more loops, each on its own thread, echoes 64 bytes on 100 "
            "connections, or serves connections that send one message. The clients are one "
            "process on another processor. libuv's loops have listeners of their own on one port; "
            "those of asio, muduo and evpp are given connections by one acceptor.")
    how = ("Processor time of the server per message or connection. All loops share the measured "
           "processor, so the time contains what the loops cost each other, and not what a second "
           "processor adds. Efficiency: the time with one loop divided by that with several.")
    order = 65
    parameters = (Parameter("workload", "what the clients do", ("echo", "churn"),
                            choices=tuple(WORKLOADS), format="{}"),
                  Parameter("loops", "loops of the server", (1, 2), high=64, format="loops: {:,}"),
                  MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per message or connection"),
               Metric("per_s", "1/s", "messages or connections per second", better="more"))
    subjects = subjects.pick("tambour", "libuv", "asio", "muduo", "evpp")
    quick = ()

    def arguments(self, cell):
        return [*WORKLOADS[cell.get("workload")], "--loops", str(cell.get("loops")),
                "--milliseconds", str(cell.get("milliseconds")),
                "--iterations", str(self.iterations_of(cell))]

    def values(self, iterations, cell):
        last = iterations[-1]
        renamed = {**last, "per_s": last.get(RATES[cell.get("workload")])}
        return super().values([renamed], cell)

    def cost(self, cell):
        return 0.02 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars("scaling-cpu", "", f"{self.title}: processor time", "server_cpu_ns",
                     figures.cells, labels, "ns per message or connection")]

    def tables(self, figures):
        """The efficiency of each subject with several loops."""
        tables = []
        for cell in figures.cells:
            alone = {**cell, "loops": 1}
            if cell["loops"] == 1 or alone not in figures.cells:
                continue
            rows = [[subject, *efficiency(figures, alone, cell, subject)]
                    for subject in figures.subjects]
            tables.append((f"{cell['workload']}: processor time of the server, ns, and efficiency",
                           ["name", "1 loop", f"{cell['loops']:,} loops", "efficiency"], rows))
        return tables


def efficiency(figures, alone: dict, cell: dict, subject: str) -> list[str]:
    """The time with one loop, with several, and the first divided by the second."""
    one, several = (figures.value(each, subject, "server_cpu_ns") for each in (alone, cell))
    ratio = f"{one / several:.2f}" if one and several else "–"
    return [quantity(one), quantity(several), ratio]


SUITE = Scaling()
