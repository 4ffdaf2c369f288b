"""AnyEvent's table of what a watcher costs: bytes, create, invoke, destroy."""

from ..model import Metric, Parameter
from ..suite import Suite
from ..words import quantity
from .anyevent import NAMES, SUBJECTS

# AnyEvent 7.17, documentation, section BENCHMARKS: watchers, bytes, and three times in
# microseconds, each loop by AnyEvent. POE by POE::Loop::Event.
PUBLISHED = {
    "ev": (100_000, 223, 0.48, 0.42, 0.26), "perl": (100_000, 431, 2.70, 0.74, 0.92),
    "ioasync": (16_000, 1726, 40.69, 26.37, 15.25),
    "ioasync-poll": (16_000, 1911, 41.92, 27.45, 16.81),
    "event": (16_000, 1203, 42.61, 34.79, 1.80), "glib": (16_000, 1118, 89.00, 12.57, 51.17),
    "poe": (2000, 6951, 108.97, 795.32, 14.24),
}
COLUMNS = {"bytes": "bytes", "create_us": "create", "invoke_us": "invoke", "destroy_us": "destroy"}
# They take time for the square of the number, or memory for each that adds up.
SLOW = {"glib": 16_000, "event": 16_000, "ioasync": 16_000, "ioasync-poll": 16_000, "poe": 2000}


class AnyEventWatchers(Suite):
    """What AnyEvent's overhead table shows."""

    name = "anyevent-watchers"
    title = "AnyEvent's watchers"
    what = ("Timers that expire at once and watchers of a descriptor that can be written, half "
            "and half, are made, called and destroyed.")
    how = ("One callback serves all, so that closures don't count; bytes are of resident memory. "
           "One program in Perl for all, AnyEvent on each of its loops.")
    order = 41
    parameters = (Parameter("watchers", "watchers", (2000, 16_000, 100_000)),)
    metrics = (Metric("bytes", "bytes", "bytes"), Metric("create_us", "µs", "create"),
               Metric("invoke_us", "µs", "invoke"), Metric("destroy_us", "µs", "destroy"))
    subjects = SUBJECTS
    rounds = 3
    iterations = 1
    time_limit = 240.0
    quoted = "median"
    quick = ({"watchers": (2000,)},)

    def unfit(self, subject, cell):
        most = SLOW.get(subject.name, cell.get("watchers"))
        return None if cell.get("watchers") <= most else f"takes too long beyond {most:,} watchers"

    def cost(self, cell):
        return 0.5 + cell.get("watchers") * 5e-5

    def tables(self, figures):
        published = [f"published {word}" for word in COLUMNS.values()]
        caption = ("AnyEvent's table of watchers: µs, medians; published figures, for as many "
                   "watchers as stand there, are those of AnyEvent's documentation")
        rows = []
        for cell in figures.cells:
            for subject in figures.subjects:
                values = [figures.value(cell, subject, name) for name in COLUMNS]
                if values[0] is None:
                    continue
                told = PUBLISHED.get(subject, (None,) * 5)
                rows.append([NAMES.get(subject, subject), f"{cell['watchers']:,}",
                             *(quantity(value) for value in values),
                             *(quantity(value) for value in told)])
        return [(caption, ["name", "watchers", *COLUMNS.values(), "published watchers", *published],
                 rows)]


SUITE = AnyEventWatchers()
