"""Echo over TCP: ping-pong of messages of one size on many connections."""

import os

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter, Subject
from ..suite import Suite

TASKS = Subject("tambour-tasks", "tambour", (("TAMBOUR_BENCH_STYLE", "tasks"),))


class Throughput(Suite):
    """Each client sends a message and waits until all of it has come back."""

    name = "throughput"
    title = "Throughput, ping-pong"
    what = ("Clients in a process on another processor, the same for all subjects, each send a "
            "message over TCP and the next when all of it has come back.")
    how = ("Messages there and back per second; and the processor time of the server for each, "
           "which does not depend on who waits for whom. The floor is epoll by hand.")
    order = 25
    parameters = (Parameter("connections", "connections", (1, 100), words="{:,} connections"),
                  Parameter("size", "bytes of a message", (64, 4096, 65536),
                            words="{:,} bytes"),
                  Parameter("milliseconds", "length of a measurement", (300,), high=50_000,
                            words="{:,} ms"))
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per message"),
               Metric("messages_per_s", "1/s", "messages per second", better="more"))
    subjects = (*subjects.pick("tambour"), TASKS,
                *subjects.pick("floor", "libevent", "libuv", "asio", "muduo", "evpp"))
    iterations = 1
    quoted = "median"
    quick = ({"connections": (100,), "rounds": 2},)
    full = ({"connections": (1, 10, 100, 1000), "size": (64, 1024, 4096, 16384, 65536, 1 << 20)},)

    def unavailable(self):
        return None if (os.cpu_count() or 1) > 1 else "a second processor is needed"

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3

    def charts(self, figures):
        return [Lines(f"throughput-{word}", "", f"{title}", name, "size",
                      figures.cells, "bytes of a message", unit)
                for word, title, name, unit in (
                    ("cpu", "Processor time of the server", "server_cpu_ns", "ns per message"),
                    ("messages", "Messages there and back", "messages_per_s", "per second"))]


SUITE = Throughput()
