"""What a suite is. A new one is one file in runner/suites/ that ends in `SUITE = MySuite()`.

The defaults below fit a program that takes each parameter as an option, does `--iterations K`,
and prints one JSON line with a list of iterations, each an object with the suite's metrics. A
suite overrides only what differs.
"""

import json
import math
import statistics

from .limits import Limits
from .model import Cell, Left, Metric, Outcome, Parameter, Subject
from .subjects import executable


class Suite:
    """One benchmark: its parameters, metrics, subjects, and how one sample of it is taken."""

    name = ""
    title = ""
    what = ""  # what is measured, one sentence
    how = ""  # how, one sentence
    program = ""  # first part of the executables' names; the suite's name unless given
    order = 100  # place among the suites
    parameters: tuple[Parameter, ...] = ()
    metrics: tuple[Metric, ...] = ()
    subjects: tuple[Subject, ...] = ()
    rounds = 6
    iterations = 2
    time_limit = 60.0  # seconds for one child
    quoted = "min"  # the statistic that charts show: "min" or "median"
    noisy = True  # False: a count, not a time
    # Each entry is one pass with these parameter values (and "rounds") in place of the defaults.
    quick: tuple[dict, ...] = ({},)
    full: tuple[dict, ...] = ({},)

    # What can be run here.

    def unavailable(self) -> str | None:
        """Why no subject of the suite can run on this machine, or None."""
        return None

    def adjust(self, params: dict, limits: Limits) -> dict:
        """The params this machine can run in place of those asked; Left where there are none."""
        return params

    def adjusted_why(self, limits: Limits) -> str:
        """The reason for what `adjust` changes."""
        return "this machine's limits"

    def unfit(self, subject: Subject, cell: Cell) -> str | None:
        """Why this subject can't play this cell, or None."""
        return None

    # How a sample is taken.

    def rounds_of(self, cell: Cell) -> int:
        return self.rounds

    def iterations_of(self, cell: Cell) -> int:
        return self.iterations

    def cost(self, cell: Cell) -> float:
        """A guess of the seconds one spawn takes: the ETA and the budget rest on it."""
        return 1.0

    def arguments(self, cell: Cell) -> list[str]:
        """The program's arguments: each parameter but the silent ones, then the iterations."""
        words = []
        for parameter in self.parameters:
            value = cell.get(parameter.name)
            if parameter.silent or value is None or value is False:
                continue
            words += [f"--{parameter.name}"] + ([] if value is True else [str(value)])
        return words + ["--iterations", str(self.iterations_of(cell))]

    def measure(self, subject: Subject, cell: Cell, launcher) -> Outcome:
        """Spawn the subject once; Left says why there is no sample."""
        path = executable(launcher.build, self.program or self.name, subject)
        text = launcher.run([str(path), *self.arguments(cell)], env=subject.env)
        said = read_line(text)
        return outcome(subject, said, self.samples(said["iterations"], cell))

    def samples(self, iterations: list[dict], cell: Cell) -> dict[str, float]:
        """One sample for each metric from the iterations of one run: the last counts."""
        return {m.name: number(iterations[-1], m.name) for m in self.metrics}

    # What the report shows.

    def describe(self, params: dict, but: tuple[str, ...] = ()) -> str:
        """A cell in words, without the parameters in `but`."""
        words = [p.phrase(params[p.name]) for p in self.parameters
                 if p.name in params and p.name not in but]
        return ", ".join(words) or self.title

    def charts(self, figures) -> list:
        """The charts to draw from the figures (see charts.py); none unless overridden."""
        return []

    def tables(self, figures) -> list[tuple[str, list[str], list[list[str]]]]:
        """Further tables for the page: (caption, head, rows). For what a field knows by heart."""
        return []

    # Options of a suite's own that are not parameters, such as a gate.

    def add_options(self, parser) -> None:
        """Add the suite's own options to the argparse group."""

    def check_options(self, options, chosen: bool) -> None:
        """ValueError when they make no sense, or are given though the suite was not chosen."""

    def conclude(self, document: dict, options, console) -> int:
        """Called with the finished document; the return value is part of the exit status."""
        return 0


def read_line(text: str) -> dict:
    """The JSON object that a subject prints, or Left."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        said = json.loads(lines[-1])
        iterations = said["iterations"]
        if not iterations or not all(isinstance(each, dict) for each in iterations):
            raise ValueError
    except (ValueError, TypeError, KeyError, IndexError):
        raise Left("printed no line of JSON with its iterations") from None
    return said


def number(iteration: dict, name: str) -> float:
    """A sample out of an iteration: a finite number that is not negative, or Left."""
    value = iteration.get(name)
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not usable or not math.isfinite(value) or value < 0:
        raise Left(f"printed no usable {name}: {value!r}")
    return value


def mean_but_first(iterations: list[dict], metrics) -> dict[str, float]:
    """Samples of muduo's protocol: of the rounds of one run the first is dropped."""
    if len(iterations) < 2:
        raise Left("the first round is dropped, and there is no second")
    return {m.name: statistics.fmean(number(each, m.name) for each in iterations[1:])
            for m in metrics}


def outcome(subject: Subject, said: dict, samples: dict[str, float]) -> Outcome:
    """An outcome, once it is sure that the subject ran on the backend it is named after.

    Tambour falls back in silence where a kernel forbids io_uring; a figure of epoll's under the
    name of io_uring would be a lie.
    """
    backend = str(said.get("backend", ""))
    if subject.backend and backend != subject.backend:
        raise Left(f"asked for {subject.backend}, ran on {backend or 'an unnamed backend'}")
    return Outcome(str(said.get("version", "")), backend, samples)
