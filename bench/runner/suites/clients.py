"""Clients: operations of hiredis, libpq, libmariadb, libmosquitto and libcurl on a loop."""

from .. import subjects
from ..charts import Bars
from ..model import Metric, Parameter, Subject
from ..servers import need_two_processors
from ..suite import Suite

# The program for libevent, on the drop-in, with a base of the drop-in and with an EventLoop.
HOSTED = Subject("tambour-hosted", "tambour-hosted")
CLIENTS = ("redis", "postgresql", "mariadb", "mosquitto", "curl")
DATABASES = ("postgresql", "mariadb")  # Which start slowly.


class Clients(Suite):
    """Uses databases, a broker and an HTTP server by the clients that programs have already."""

    name = program = "clients"
    title = "Clients of Redis, PostgreSQL, MariaDB, MQTT and HTTP"
    what = ("A GET of Redis for 100 bytes with hiredis, `select 1` in PostgreSQL with libpq and in "
            "MariaDB with libmariadb, a message of 100 bytes that the broker acknowledges with "
            "libmosquitto, and a download of 100 bytes with libcurl, one or a hundred at a time. "
            "Tambour uses its adapters, in tasks. libevent and libuv use the adapters of hiredis, "
            "and for the other clients what these document. tambour-hosted is the program for "
            "libevent on an EventLoop, and tambour-libevent the same program on the drop-in.")
    how = ("Processor time of the process that has the client, per operation. The server is "
           "another process on another processor. Connections exist before.")
    order = 99.5
    parameters = (Parameter("client", "the client", CLIENTS, choices=CLIENTS, format="{}"),
                  Parameter("in-flight", "operations at the same time", (1, 100), high=100,
                            format="{:,} at a time"),
                  Parameter("operations", "operations of a run", (5000,), high=10_000_000,
                            format="{:,} operations"))
    metrics = (Metric("operation_ns", "ns", "processor time per operation"),
               Metric("operations_per_cpu_s", "1/s", "operations per second of processor time",
                      better="more"))
    subjects = (*subjects.pick("tambour"), HOSTED,
                *subjects.pick("tambour-libevent", "libevent", "libuv"))
    iterations = 1
    quoted = "median"
    two_ended = True
    quick = ()

    def unavailable(self):
        return need_two_processors()

    def cost(self, cell):
        return 0.3 + 2 * (cell.get("client") in DATABASES) + cell.get("operations") * 1e-4

    def charts(self, figures):
        labels = [self.describe(cell, omit=figures.constant()) for cell in figures.cells]
        return [Bars(self.name, "", self.title, self.metrics[0].name, figures.cells, labels,
                     f"{self.metrics[0].unit} per operation")]


SUITE = Clients()
