"""AnyEvent's table of the cost of a watcher: bytes, create, invoke, destroy."""

from ..formatting import quantity
from ..model import Metric, Parameter, Subject
from ..suite import Suite
from . import anyevent

# Besides the loops that AnyEvent uses, three of them without AnyEvent, and Tk, which cannot watch
# as many descriptors as the other suites have.
SUBJECTS = (*anyevent.SUBJECTS,
            Subject("tambour-native", "tambour-native"), Subject("ev-native", "ev-native"),
            Subject("event-native", "event-native"), Subject("tk", "tk"))
NAMES = {**anyevent.NAMES, "tambour-native": "Tambour, native", "ev-native": "EV, native",
         "event-native": "Event, native", "tk": "Tk"}

# AnyEvent 7.17, documentation, section BENCHMARKS: watchers, bytes, and three times in
# microseconds. POE with POE::Loop::Event.
PUBLISHED = {
    "ev-native": (100_000, 223, 0.47, 0.43, 0.27),
    "event-native": (16_000, 516, 31.16, 31.84, 0.82),
    "tk": (2000, 1346, 20.96, 10.75, 8.00),
    "ev": (100_000, 223, 0.48, 0.42, 0.26), "perl": (100_000, 431, 2.70, 0.74, 0.92),
    "ioasync": (16_000, 1726, 40.69, 26.37, 15.25),
    "ioasync-poll": (16_000, 1911, 41.92, 27.45, 16.81),
    "event": (16_000, 1203, 42.61, 34.79, 1.80), "glib": (16_000, 1118, 89.00, 12.57, 51.17),
    "poe": (2000, 6951, 108.97, 795.32, 14.24),
}
COLUMNS = {"bytes": "bytes", "create_us": "create", "invoke_us": "invoke", "destroy_us": "destroy"}
# Their time is quadratic in the number of watchers, or their memory too large.
SLOW = {"glib": 16_000, "event": 16_000, "event-native": 16_000, "ioasync": 16_000,
        "ioasync-poll": 16_000, "poe": 2000, "tk": 2000}


class AnyEventWatchers(Suite):
    """AnyEvent's overhead table."""

    name = "anyevent-watchers"
    title = "AnyEvent's watchers"
    what = ("Timers that expire at once and watchers of a writable descriptor, one half each, are "
            "created, invoked and destroyed.")
    how = ("All share one callback, so that closures do not count; bytes are of resident memory. "
           "One Perl program for all: AnyEvent with each of its event loops, and the loops whose "
           "name ends in -native without AnyEvent.")
    order = 41
    parameters = (Parameter("watchers", "watchers", (2000, 16_000, 100_000)),)
    metrics = (Metric("bytes", "bytes", "bytes"), Metric("create_us", "µs", "create"),
               Metric("invoke_us", "µs", "invoke"), Metric("destroy_us", "µs", "destroy"))
    subjects = SUBJECTS
    rounds = 6
    iterations = 1
    time_limit = 240.0
    quoted = "median"
    decisive = ("create_us", "invoke_us", "destroy_us")
    quick = ({"watchers": (2000,), "rounds": 20},)
    quick_subjects = ("tambour", "ev", "perl")

    def unsupported(self, subject, cell):
        most = SLOW.get(subject.name, cell.get("watchers"))
        return None if cell.get("watchers") <= most else f"takes too long beyond {most:,} watchers"

    def cost(self, cell):
        return 0.02 + cell.get("watchers") * 2e-5

    def tables(self, figures):
        """One table for each column of AnyEvent's: the measured and the published values."""
        tables = []
        for at, (name, title) in enumerate(COLUMNS.items(), start=1):
            rows = []
            for cell in figures.cells:
                for subject in figures.subjects:
                    value = figures.value(cell, subject, name)
                    published = PUBLISHED.get(subject, (None,) * 5)
                    if value is not None:
                        known = f"{quantity(published[at])} ({quantity(published[0])})"
                        rows.append([NAMES.get(subject, subject), f"{cell['watchers']:,}",
                                     quantity(value), known if published[0] else "–"])
            tables.append((f"AnyEvent's documentation: {title}",
                           ["name", "watchers", "median", "published (watchers)"], rows))
        return tables


SUITE = AnyEventWatchers()
