"""Random reads of a file."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite


class Files(Suite):
    """Blocks of 4 KiB at random offsets, several at a time."""

    name = "files"
    title = "Random reads of a file"
    what = ("Blocks of 4 KiB at random offsets of one file, a given number of reads in flight. "
            "Without --direct the file is in the page cache, so that the overhead of a read is "
            "measured, not the disk.")
    how = ("Time per read, and processor time of all threads per read. The floor is pread(2), one "
           "after another; iouring is hand-written; libuv uses its thread pool; asio is built for "
           "io_uring. All threads share one processor.")
    order = 90
    parameters = (Parameter("mebibytes", "size of the file in MiB", (64,), high=100_000,
                            format="{:,} MiB"),
                  Parameter("depth", "reads in flight", (1, 32), high=1024,
                            format="{:,} in flight"),
                  Parameter("reads", "reads in a run", (50_000,)),
                  Parameter("direct", "bypass the page cache (O_DIRECT)", (False,), flag=True,
                            format="O_DIRECT"))
    metrics = (Metric("read_ns", "ns", "time per read"),
               Metric("cpu_ns", "ns", "processor time per read, all threads"))
    subjects = subjects.pick("tambour", "tambour-uring", "floor", "iouring", "libuv", "asio")
    rounds = 6
    quoted = "median"
    quick = ({"mebibytes": (8,), "reads": (3000,), "rounds": 22},)
    full = ({"depth": (1, 4, 32, 128)},
            {"depth": (1, 32), "reads": (5000,), "direct": (True,)})

    def cost(self, cell):
        each = 1e-4 if cell.get("direct") else 8e-6
        return 0.01 + cell.get("mebibytes") * 1e-3 + 2 * cell.get("reads") * each

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("depth",)):
            where = "Direct" if shared["direct"] else "From the page cache"
            for word, what, metric in (("time", "time per read", "read_ns"),
                                       ("cpu", "processor time", "cpu_ns")):
                name, title = figures.heading(f"files-{word}", f"{where}: {what}", shared,
                                              ("direct",))
                charts.append(Lines(name, "", title, metric, "depth", cells, "reads in flight",
                                    "ns"))
        return charts


SUITE = Files()
