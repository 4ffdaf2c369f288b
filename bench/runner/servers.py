"""What the suites with a TCP server share: throughput, latency, churn, idle, fanout.

All run the programs `server-<peer>` with the workload as the first argument. The server runs on the
measured processor, its clients on the others.
"""

from . import subjects
from .limits import allowed_cpus
from .model import Parameter, Subject
from .suite import Suite

TASKS = Subject("tambour-tasks", "tambour", (("TAMBOUR_BENCH_STYLE", "tasks"),))
SPINNING = Subject("tambour-spin", "tambour", (("TAMBOUR_BENCH_SPIN_US", "100"),))
DROP_IN = subjects.pick("tambour-libevent")
PEERS = subjects.pick("floor", "libev", "libevent", "libuv", "asio", "muduo", "evpp")
# The upper bound keeps a run, including its set-up and the two measurements of idle, below the time
# limit of 60 s of the runner and of the programs' watchdog.
MILLISECONDS = Parameter("milliseconds", "length of a measurement", (300,), low=10, high=20_000,
                         format="{:,} ms")


class ServerSuite(Suite):
    """A suite whose name is the workload of the server programs."""

    program = "server"
    subjects = (*subjects.pick("tambour"), TASKS, *DROP_IN, *PEERS)
    iterations = 1
    quoted = "median"
    two_ended = True

    def unavailable(self):
        return need_two_processors()

    def arguments(self, cell):
        return [self.name, *super().arguments(cell)]

    def adjust(self, params, limits):
        """Clamps connections to the limit of open files, of the client as well as the server."""
        if "connections" in params:
            params["connections"] = min(params["connections"], limits.descriptors_max)
        return params

    def adjusted_because(self, limits):
        return f"the limit of open files is {limits.open_files:,}"


def need_two_processors() -> str | None:
    """Why a suite with two ends cannot run on this machine, or None."""
    return None if len(allowed_cpus()) > 1 else "a second processor is needed"
