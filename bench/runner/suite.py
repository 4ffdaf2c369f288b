"""The base class of suites. A suite is one file in runner/suites/ that ends in `SUITE = MySuite()`.

The defaults fit a program that takes each parameter as an option and `--iterations K`, and prints
one line of JSON with a list of iterations, each an object with the suite's metrics. A suite
overrides only what differs.
"""

import json
import math
import statistics

from .limits import Limits
from .model import Cell, Metric, NotMeasured, Parameter, Sample, Subject
from .subjects import QUICK, executable


class Suite:
    """One benchmark: its parameters, metrics and subjects, and how a sample is taken."""

    name = ""
    title = ""
    what = ""  # what is measured, for the page
    how = ""  # how it is measured, for the page
    program = ""  # first part of the executables' names; by default the suite's name
    order = 100  # position among the suites
    parameters: tuple[Parameter, ...] = ()
    metrics: tuple[Metric, ...] = ()
    # The names of the metrics on which the verdict of the suite is based; by default the first.
    decisive: tuple[str, ...] = ()
    subjects: tuple[Subject, ...] = ()
    rounds = 12
    iterations = 2
    time_limit = 60.0  # seconds for one run of a subject
    quoted = "min"  # the statistic that line charts show: "min" or "median"
    exact = False  # True: a count that repeats, not a time
    two_ended = False  # True: the programs use the other processors too
    # Each entry is one pass: parameter values, and "rounds", in place of the defaults. A suite
    # without a pass is not part of that set.
    quick: tuple[dict, ...] = ({},)
    full: tuple[dict, ...] = ({},)
    quick_subjects: tuple[str, ...] = QUICK

    @property
    def decisive_metrics(self) -> list[Metric]:
        return [m for m in self.metrics if m.name in (self.decisive or (self.metrics[0].name,))]

    # What can run on this machine.

    def unavailable(self) -> str | None:
        """Why no subject of the suite can run on this machine, or None."""
        return None

    def adjust(self, params: dict, limits: Limits) -> dict:
        """The params that this machine can run instead; NotMeasured if there are none."""
        return params

    def adjusted_because(self, limits: Limits) -> str:
        """The reason for what `adjust` changes."""
        return "the limits of this machine"

    def unsupported(self, subject: Subject, cell: Cell) -> str | None:
        """Why this subject cannot run this cell, or None."""
        return None

    # How a sample is taken.

    def rounds_of(self, cell: Cell) -> int:
        return self.rounds

    def iterations_of(self, cell: Cell) -> int:
        return self.iterations

    def cost(self, cell: Cell) -> float:
        """An estimate of the seconds that one run takes, for the progress display."""
        return 1.0

    def arguments(self, cell: Cell) -> list[str]:
        """The arguments of the program: each parameter unless it is silent, and the iterations."""
        words = []
        for parameter in self.parameters:
            value = cell.get(parameter.name)
            if parameter.silent or value is None or value is False:
                continue
            words += [f"--{parameter.name}"] + ([] if value is True else [str(value)])
        return words + ["--iterations", str(self.iterations_of(cell))]

    def measure(self, subject: Subject, cell: Cell, launcher) -> Sample:
        """Runs the subject once; NotMeasured says why there is no sample."""
        path = executable(launcher.build, self.program or self.name, subject)
        text = launcher.run([str(path), *self.arguments(cell)], env=subject.env)
        report = parse_report(text)
        return sample(subject, report, self.values(report["iterations"], cell))

    def values(self, iterations: list[dict], cell: Cell) -> dict[str, float]:
        """One value for each metric from the iterations of one run: the last iteration counts."""
        return {m.name: number(iterations[-1], m.name) for m in self.metrics}

    # What the report shows.

    def describe(self, params: dict, omit: tuple[str, ...] = ()) -> str:
        """A cell as text, without the parameters in `omit`."""
        words = [p.phrase(params[p.name]) for p in self.parameters
                 if p.name in params and p.name not in omit]
        return ", ".join(words) or self.title

    def charts(self, figures) -> list:
        """The charts of the suite (see charts.py)."""
        return []

    def tables(self, figures) -> list[tuple[str, list[str], list[list[str]]]]:
        """Further tables for the page: (caption, head, rows), at most four columns."""
        return []

    # Options of the suite that are not parameters, such as a gate.

    def add_options(self, parser) -> None:
        """Adds the suite's own options to the argparse group."""

    def check_options(self, options, chosen: bool) -> None:
        """ValueError if the options are invalid, or given though the suite was not chosen."""

    def conclude(self, document: dict, options, console) -> int:
        """Called with the finished document; the result is part of the exit status."""
        return 0


def parse_report(text: str) -> dict:
    """The JSON object that a subject prints as its last line, or NotMeasured."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        report = json.loads(lines[-1])
        iterations = report["iterations"]
        if not iterations or not all(isinstance(each, dict) for each in iterations):
            raise ValueError
    except (ValueError, TypeError, KeyError, IndexError):
        raise NotMeasured("printed no line of JSON with its iterations") from None
    return report


def number(iteration: dict, name: str) -> float:
    """A value of an iteration: a finite number that is not negative, or NotMeasured."""
    value = iteration.get(name)
    valid = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not valid or not math.isfinite(value) or value < 0:
        raise NotMeasured(f"printed no valid {name}: {value!r}")
    return value


def mean_after_first(iterations: list[dict], metrics) -> dict[str, float]:
    """The values by muduo's protocol: the mean of the iterations, the first one dropped."""
    if len(iterations) < 2:
        raise NotMeasured("the first iteration is dropped, and there is no second")
    return {m.name: statistics.fmean(number(each, m.name) for each in iterations[1:])
            for m in metrics}


def sample(subject: Subject, report: dict, values: dict[str, float]) -> Sample:
    """A sample, if the subject ran on the backend that its name promises.

    Tambour falls back to another backend if the kernel forbids io_uring. A value measured on epoll
    must not be reported as one of io_uring.
    """
    backend = str(report.get("backend", ""))
    if subject.backend and backend != subject.backend:
        raise NotMeasured(f"asked for {subject.backend}, ran on {backend or 'an unknown backend'}")
    return Sample(str(report.get("version", "")), backend, values)
