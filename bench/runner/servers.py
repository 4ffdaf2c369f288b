"""What the suites share that play with a TCP server: throughput, latency, churn, idle, fanout.

All start the programs `server-<peer>` and name the game as the first argument; the server stands on
the chosen processor and its clients on the others.
"""

from . import subjects
from .limits import allowed_cpus
from .model import Parameter, Subject
from .suite import Suite

TASKS = Subject("tambour-tasks", "tambour", (("TAMBOUR_BENCH_STYLE", "tasks"),))
SPINNING = Subject("tambour-spin", "tambour", (("TAMBOUR_BENCH_SPIN_US", "100"),))
PEERS = subjects.pick("floor", "libev", "libevent", "libuv", "asio", "muduo", "evpp")
# With what comes before, and twice in a run of idle, the longest stays within the 60 s after which
# the programs' watchdog and the runner take a run for one that hangs.
MILLISECONDS = Parameter("milliseconds", "length of a measurement", (300,), low=10, high=20_000,
                         words="{:,} ms")


class ServerSuite(Suite):
    """A game with a server; its name is the program's first argument."""

    program = "server"
    subjects = (*subjects.pick("tambour"), TASKS, *PEERS)
    iterations = 1
    quoted = "median"

    def unavailable(self):
        return need_two_processors()

    def arguments(self, cell):
        return [self.name, *super().arguments(cell)]

    def adjust(self, params, limits):
        """Connections within the limit of open files, which client and server have each."""
        if "connections" in params:
            params["connections"] = min(params["connections"], limits.descriptors_max)
        return params

    def adjusted_why(self, limits):
        return f"the limit of open files is {limits.open_files:,}"


def need_two_processors() -> str | None:
    """For what has two ends: why it cannot run here, or None."""
    return None if len(allowed_cpus()) > 1 else "a second processor is needed"
