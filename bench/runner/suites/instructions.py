"""Instructions: the cost of the drum, of echoed messages and of HTTP requests in user space,
counted, not timed."""

import re
import shutil
import tempfile
from pathlib import Path

from .. import gate, subjects
from ..charts import Bars
from ..model import Metric, NotMeasured, Parameter
from ..pairs import ACTIVE, PAIRS, TIMEOUTS, PairsSuite
from ..subjects import executable
from ..suite import number, parse_report, sample

# Two runs that differ only in this: the difference between their counts is due to events alone.
WRITES = (2000, 12_000)
REQUESTS = (1600, 6400)  # also messages
# The peers whose servers of HTTP are one process, without the time of a garbage collector.
HTTP_PEERS = ("tambour", "tambour-libevent", "floor", "libevent")
HTTP = Parameter("http", "instead of the drum: HTTP requests that are sent at once on one "
                 "connection, for 14 bytes of text; 0: the drum", (0, 1, 16), low=0, high=100,
                 silent=True, format="HTTP requests, {} at a time")
ECHO = Parameter("echo", "instead of the drum: messages of so many bytes that a server echoes, one "
                 "after the other on one connection; 0: the drum", (0,), low=0, high=1 << 16,
                 silent=True, format="echoed messages of {} bytes")


class Instructions(PairsSuite):
    """User-space instructions per event, counted by callgrind.

    An event is a byte of the drum, an echoed message, or a request of HTTP.
    """

    name = "instructions"
    title = "Instructions per event"
    what = ("User-space instructions per event of the drum, per echoed message and per HTTP "
            "request, counted by valgrind's callgrind: the same on a busy machine as on an idle "
            "one.")
    how = ("The program runs twice, with different numbers of events; the difference in "
           "instructions is divided by the difference in events, so that set-up cancels out.")
    order = 30
    parameters = (PAIRS, ACTIVE, type(TIMEOUTS)(TIMEOUTS.name, TIMEOUTS.help, (False, True),
                                                flag=True), HTTP, ECHO)
    metrics = (Metric("instructions_per_event", "instructions", "instructions per event",
                      comparatives=("fewer", "more")),)
    # A request for metrics is no part of an event: how many there are depends on the time.
    subjects = (*subjects.pick(*subjects.LOOPS), subjects.OBSERVED[0])
    rounds = 1
    time_limit = 180.0
    exact = True
    quick = ({"timeouts": (False,), "http": (0,)},)

    def unavailable(self):
        return None if shutil.which("valgrind") else "valgrind is not installed"

    def cost(self, cell):
        return 1.2  # two runs under valgrind

    def adjust(self, params, limits):
        """Requests of HTTP and messages have none of the parameters of the drum."""
        for each in (HTTP, ECHO):
            if params.get(each.name):
                return {each.name: params[each.name]}
        return super().adjust(params, limits)

    def unsupported(self, subject, cell):
        if cell.get(HTTP.name):
            if subject.backend in ("poll", "select"):
                return "requests differ between backends only by what the drum shows"
            return None if subject.peer in HTTP_PEERS else "its HTTP server is not counted"
        return super().unsupported(subject, cell)

    def measure(self, subject, cell, launcher):
        is_http, is_echo = bool(cell.get(HTTP.name)), bool(cell.get(ECHO.name))
        is_server = is_http or is_echo
        program = "http" if is_http else "server" if is_echo else self.program
        path = executable(launcher.build, program, subject)
        counts, events = [], []
        for amount in REQUESTS if is_server else WRITES:
            with tempfile.TemporaryDirectory(prefix="tambour-callgrind-") as scratch:
                # Servers are a process of their own.
                out = Path(scratch) / "out.%p"
                arguments = (self._requests if is_http else self._messages if is_echo
                             else self._arguments)(cell, amount)
                text = launcher.run(
                    ["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={out}",
                     str(path), *arguments],
                    env=subject.env, fixed_addresses=True)
                report = parse_report(text)
                last = report["iterations"][-1]
                name = f"out.{number(last, 'process'):.0f}" if is_server else "out.*"
                counts.append(sum(total_instructions(each) for each in out.parent.glob(name)))
                events.append(sum(number(each, "events") for each in report["iterations"]))
        if events[1] <= events[0]:
            raise NotMeasured("handled no more events when it was asked to")
        per_event = (counts[1] - counts[0]) / (events[1] - events[0])
        if per_event <= 0:
            raise NotMeasured("took no more instructions for more events")
        return sample(subject, report, {self.metrics[0].name: round(per_event)})

    def _arguments(self, cell, writes: int) -> list[str]:
        words = ["--pairs", str(cell.get("pairs")), "--active", str(cell.get("active")),
                 "--writes", str(writes)]
        return words + ["--timeouts"] * cell.get("timeouts") + ["--iterations", "1"]

    def _requests(self, cell, requests: int) -> list[str]:
        return ["count", "--connections", "1", "--requests", str(requests), "--pipelined",
                str(cell.get(HTTP.name)), "--size", "14", "--iterations", "1"]

    def _messages(self, cell, messages: int) -> list[str]:
        return ["count", "--connections", "1", "--messages", str(messages), "--size",
                str(cell.get(ECHO.name)), "--iterations", "1"]

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("timeouts", HTTP.name, ECHO.name)):
            heading = f"{self.title}: {self.describe(shared) if shared else 'servers'}"
            name, title = figures.heading(self.name if shared else f"{self.name}-servers", heading,
                                          shared, tuple(shared))
            labels = [self.describe(c, omit=tuple(shared)) for c in cells]
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
