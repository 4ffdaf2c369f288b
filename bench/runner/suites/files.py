"""Random reads of a file."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite


class Files(Suite):
    """4 KiB here and there, several at a time."""

    name = "files"
    title = "Random reads of a file"
    what = ("Blocks of 4 KiB at random places of one file, so many reads under way at a time. The "
            "file is in the page cache unless --direct is asked for: what is measured is the way "
            "to it.")
    how = ("Time for each read, and processor time of all threads for each. The floor is pread, "
           "one after the other; iouring is io_uring by hand; libuv uses its threads; asio is "
           "built for io_uring. One processor has them all.")
    order = 90
    parameters = (Parameter("mebibytes", "size of the file in MiB", (64,), high=100_000,
                            words="{:,} MiB"),
                  Parameter("depth", "reads under way at a time", (1, 32), high=1024,
                            words="{:,} at a time"),
                  Parameter("reads", "reads in a run", (50_000,)),
                  Parameter("direct", "past the page cache (O_DIRECT)", (False,), flag=True))
    metrics = (Metric("read_ns", "ns", "time per read"),
               Metric("cpu_ns", "ns", "processor time per read, all threads"))
    subjects = subjects.pick("tambour", "tambour-uring", "floor", "iouring", "libuv", "asio")
    rounds = 3
    quoted = "median"
    quick = ({"reads": (10_000,)},)
    full = ({"depth": (1, 4, 32, 128)},
            {"depth": (1, 32), "reads": (5000,), "direct": (True,)})

    def cost(self, cell):
        each = 1e-4 if cell.get("direct") else 8e-6
        return 0.05 + cell.get("mebibytes") * 1e-3 + 2 * cell.get("reads") * each

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("depth",)):
            where = f"{'Past' if shared['direct'] else 'In'} the page cache"
            for word, what, metric in (("time", "time per read", "read_ns"),
                                       ("cpu", "processor time", "cpu_ns")):
                name, title = figures.heading(f"files-{word}", f"{where}: {what}", shared,
                                              ("direct",))
                charts.append(Lines(name, "", title, metric, "depth", cells, "reads at a time",
                                    "ns"))
        return charts


SUITE = Files()
