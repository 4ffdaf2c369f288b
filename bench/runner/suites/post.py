"""Tasks posted between threads: evpp's task-queue suites."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import need_two_processors
from ..suite import Suite

RING = "ring"


class Post(Suite):
    """Producers that post to one loop, or loops in a ring."""

    name = "post"
    title = "Posting tasks between threads"
    what = ("Threads post tasks, each a function object of two words, to one loop as fast as "
            "possible; the loop has one processor, the threads the others. In a ring, one task "
            "goes from loop to loop.")
    how = ("Time per task from the first post to the last execution, and processor time of all "
           "threads per task. mutex (a vector with a mutex), boost (lockfree::queue) and "
           "moodycamel (ConcurrentQueue) are combined with a hand-written epoll loop; libevent and "
           "libuv provide only the wakeup, so their queue is a vector with a mutex. evpp is built "
           "with one of these three. The floor pushes onto a lock-free stack and allocates "
           "nothing.")
    order = 55
    parameters = (Parameter("producers", "threads that post; loops in a ring", (1, 2, 4, 8),
                            high=1000),
                  Parameter("tasks", "tasks in total; hops in a ring", (500_000,)),
                  Parameter("pattern", "stream to one loop, or ring of loops", ("stream",),
                            choices=("stream", RING)))
    metrics = (Metric("post_ns", "ns", "time per task"),
               Metric("cpu_ns", "ns", "processor time per task, all threads"))
    subjects = subjects.pick("tambour", "tambour-uring", "floor", "mutex", "boost", "moodycamel",
                             "libevent", "libuv", "asio", "muduo", "evpp", "evpp-boost",
                             "evpp-moodycamel")
    iterations = 1
    quoted = "median"
    two_ended = True
    quick = ({"producers": (1, 8), "tasks": (50_000,), "rounds": 40},)
    full = ({"producers": (1, 2, 4, 6, 8), "tasks": (1_000_000,)},
            {"producers": (2, 8), "tasks": (20_000,), "pattern": (RING,)})

    def unavailable(self):
        return need_two_processors()

    def cost(self, cell):
        return 0.005 + cell.get("tasks") * (20e-6 if cell.get("pattern") == RING else 0.4e-6)

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("producers",)):
            pattern = shared["pattern"]
            x = "loops in the ring" if pattern == RING else "producers"
            for word, what, metric in (("time", "time per task", "post_ns"),
                                       ("cpu", "processor time per task", "cpu_ns")):
                name, title = figures.heading(f"post-{word}", f"{pattern.capitalize()}: {what}",
                                              shared, ("pattern",))
                charts.append(Lines(name, "", title, metric, "producers", cells, x, "ns"))
        return charts


SUITE = Post()
