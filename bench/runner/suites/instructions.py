"""Instructions: the cost of the drum in user space, counted instead of timed."""

import re
import shutil
import tempfile
from pathlib import Path

from .. import gate, subjects
from ..charts import Bars
from ..model import Metric, NotMeasured
from ..pairs import ACTIVE, PAIRS, TIMEOUTS, PairsSuite
from ..subjects import executable
from ..suite import number, parse_report, sample

# Two runs that differ only in this: the difference between their counts is due to events alone.
WRITES = (2000, 12_000)


class Instructions(PairsSuite):
    """User-space instructions per event of the drum, counted by callgrind."""

    name = "instructions"
    title = "Instructions per event"
    what = ("User-space instructions per event of the drum, counted by valgrind's callgrind: the "
            "same on a busy machine as on an idle one.")
    how = ("The program runs twice, with different numbers of events; the difference in "
           "instructions is divided by the difference in events, so that set-up cancels out.")
    order = 30
    parameters = (PAIRS, ACTIVE, type(TIMEOUTS)(TIMEOUTS.name, TIMEOUTS.help, (False, True),
                                                flag=True))
    metrics = (Metric("instructions_per_event", "instructions", "instructions per event",
                      comparatives=("fewer", "more")),)
    subjects = subjects.pick(*subjects.LOOPS)
    rounds = 1
    time_limit = 180.0
    exact = True
    quick = ({"timeouts": (False,)},)

    def unavailable(self):
        return None if shutil.which("valgrind") else "valgrind is not installed"

    def cost(self, cell):
        return 1.2  # two runs under valgrind

    def measure(self, subject, cell, launcher):
        path = executable(launcher.build, self.program, subject)
        counts, events = [], []
        for writes in WRITES:
            with tempfile.TemporaryDirectory(prefix="tambour-callgrind-") as scratch:
                out = Path(scratch) / "out"
                text = launcher.run(
                    ["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={out}",
                     str(path), *self._arguments(cell, writes)],
                    env=subject.env, fixed_addresses=True)
                report = parse_report(text)
                counts.append(total_instructions(out))
                events.append(sum(number(each, "events") for each in report["iterations"]))
        if events[1] <= events[0]:
            raise NotMeasured(f"handled no more events for {WRITES[1]:,} writes than for "
                              f"{WRITES[0]:,}")
        per_event = (counts[1] - counts[0]) / (events[1] - events[0])
        if per_event <= 0:
            raise NotMeasured("took no more instructions for more events")
        return sample(subject, report, {self.metrics[0].name: round(per_event)})

    def _arguments(self, cell, writes: int) -> list[str]:
        words = ["--pairs", str(cell.get("pairs")), "--active", str(cell.get("active")),
                 "--writes", str(writes)]
        return words + ["--timeouts"] * cell.get("timeouts") + ["--iterations", "1"]

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("timeouts",)):
            name, title = figures.heading(self.name, f"{self.title}: {self.describe(shared)}",
                                          shared, tuple(shared))
            labels = [self.describe({"timeouts": c["timeouts"]}) for c in cells]
            charts.append(Bars(name, "", title, self.metrics[0].name, cells, labels,
                               "instructions per event, user space"))
        return charts

    def add_options(self, parser):
        gate.add_options(parser)

    def check_options(self, options, chosen):
        gate.check_options(options, chosen)

    def conclude(self, document, options, console):
        return gate.conclude(self, document, options, console)


def total_instructions(out: Path) -> int:
    """The total in callgrind's output file; NotMeasured if there is none."""
    try:
        found = re.findall(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    except OSError:
        found = []
    if not found:
        raise NotMeasured("callgrind wrote no total")
    return int(found[-1])


SUITE = Instructions()
