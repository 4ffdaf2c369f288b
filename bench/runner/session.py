"""Runs a plan: short rounds of all cells interleaved, the subjects of a round in random order.

Interleaving makes ratios comparable on a machine that is shared: a disturbance affects all subjects
of a round, and only some rounds of each cell. A sample that the kernel's counters show as disturbed
is measured again at once, next to its neighbours of the same round (see disturbance.py).
"""

import random
import time
from collections import Counter
from dataclasses import dataclass

from . import disturbance
from .child import Launcher
from .estimates import PAIRS_MIN
from .model import NotMeasured, TimeLimitExceeded
from .plan import Plan, Task
from .progress import Progress
from .results import Results

ROUNDS_MIN = PAIRS_MIN  # of each cell, even if the budget is exhausted
TIME_LIMITS_MAX = 2  # of one subject in one suite, which then is skipped
ATTEMPTS_MAX = 3  # for one sample
# Repeating samples may take this share of the time of the run so far.
REPEATS_SHARE = 0.2
# Fixed, so that a run can be repeated with the same order of subjects.
SEED = 1


@dataclass(frozen=True)
class Round:
    """One round of one task."""

    task: Task
    index: int


def schedule(tasks: list[Task]) -> list[Round]:
    """All rounds, those of each cell spread evenly over the whole run."""
    rounds = [Round(task, index) for task in tasks for index in range(task.rounds)]
    return sorted(rounds, key=lambda each: (each.index + 0.5) / each.task.rounds)


def order(subjects: list, generator: random.Random) -> list:
    """The subjects in random order, so that no subject always has the same position."""
    return generator.sample(subjects, len(subjects))


class Session:
    """One run of a plan into `results`. KeyboardInterrupt passes through; results stay valid."""

    def __init__(self, launcher: Launcher, results: Results, progress: Progress,
                 budget_s: float | None = None, time_limit_s: float | None = None) -> None:
        self.notes: list[str] = []
        self._launcher = launcher
        self._results = results
        self._progress = progress
        self._budget_s = budget_s
        self._time_limit_s = time_limit_s
        self._time_limits: Counter = Counter()
        self._failed: set[tuple] = set()  # (cell, subject)
        self._generator = random.Random(SEED)
        self._began = 0.0
        self._repeating_s = 0.0

    def run(self, plan: Plan) -> None:
        """Runs every round, or as many as the budget allows."""
        self._began = time.monotonic()
        shortened: dict = {}
        for each in schedule(plan.tasks):
            if each.index >= ROUNDS_MIN and self._budget_exhausted():
                shortened[each.task.cell] = None
                self._progress.skip(each.task)
                continue
            self._launcher.time_limit = self._time_limit_s or each.task.suite.time_limit
            self._round(each)
        if shortened:
            self.notes.append(f"{len(shortened)} of {len(plan.tasks)} cells had fewer rounds than "
                              f"planned, because the budget of {self._budget_s:g} s was used up")

    def _budget_exhausted(self) -> bool:
        return self._budget_s is not None and time.monotonic() - self._began > self._budget_s

    def _round(self, each: Round) -> None:
        """Every subject once."""
        for subject in order(each.task.subjects, self._generator):
            key = (each.task.cell, subject.name)
            if key not in self._failed:
                self._progress.start(each.task, each.index, subject.name)
                try:
                    self._sample(each, subject)
                except NotMeasured as reason:
                    self._failed.add(key)
                    self._skip(each, subject, reason)
            self._progress.done(each.task)

    def _sample(self, each: Round, subject) -> None:
        """Measures a subject and adds the sample, or raises NotMeasured."""
        suite, cell = each.task.suite, each.task.cell
        if self._time_limits[suite.name, subject.name] >= TIME_LIMITS_MAX:
            raise NotMeasured("skipped after it exceeded the time limit in other cells")
        cpus = self._launcher.measured_cpus(suite.two_ended)
        for attempt in range(ATTEMPTS_MAX):
            began = time.monotonic()
            before = disturbance.read_counters(cpus)
            sample = suite.measure(subject, cell, self._launcher)
            counters = disturbance.read_counters(cpus) - before
            history = self._results.history(cell, subject.name)
            history.append(counters)
            disturbed = not suite.exact and disturbance.score(counters, history) > 1
            if attempt:
                self._repeating_s += time.monotonic() - began
                self._results.repeated += 1
            if not disturbed or not self._may_repeat():
                break
        self._results.add(suite, cell, subject, each.index, sample, counters)

    def _may_repeat(self) -> bool:
        return self._repeating_s < REPEATS_SHARE * (time.monotonic() - self._began)

    def _skip(self, each: Round, subject, reason: NotMeasured) -> None:
        suite, cell = each.task.suite, each.task.cell
        self._time_limits[suite.name, subject.name] += isinstance(reason, TimeLimitExceeded)
        text = f"{reason} (in round {each.index + 1} of {each.task.rounds})" if each.index \
            else str(reason)
        text = text.replace(str(self._launcher.build), "BUILD")
        self._results.skip(suite.name, subject.name, cell.params, text)
        self._progress.say(f"skipped: {suite.name}, {suite.describe(cell.params)}: "
                           f"{subject.name}: {text}")
