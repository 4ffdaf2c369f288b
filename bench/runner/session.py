"""Run a plan: for each cell round by round, each subject once a round, the order rotated.

Interleaving is what makes ratios honest on a machine that others use: whatever slows it down for
a while hits every subject alike.
"""

import time
from collections import Counter

from .child import Launcher
from .figures import SAMPLES_MIN
from .model import Left, TimeLimit
from .plan import Plan, Task
from .progress import Progress
from .results import Results

ROUNDS_MIN = SAMPLES_MIN  # of a cell, however short of time the run is
TIME_LIMITS_MAX = 2  # of one subject in one suite; then it is left alone


def order(subjects: list, round_index: int) -> list:
    """The order of subjects in a round: rotated by one each time, so that none is always first."""
    at = round_index % len(subjects)
    return subjects[at:] + subjects[:at]


class Session:
    """One run of a plan into `results`. Raises KeyboardInterrupt through; nothing gets lost."""

    def __init__(self, launcher: Launcher, results: Results, progress: Progress,
                 budget_s: float | None = None, time_limit_s: float | None = None) -> None:
        self.notes: list[str] = []
        self._launcher = launcher
        self._results = results
        self._progress = progress
        self._budget_s = budget_s
        self._time_limit_s = time_limit_s
        self._late: Counter = Counter()
        self._began = 0.0
        self._cost_left = 0.0  # what the suites guess; only its proportions count
        self._cost_done = 0.0

    def run(self, plan: Plan) -> None:
        """Run every task; with a budget, give up rounds where the rest would not fit."""
        self._began = time.monotonic()
        self._cost_left = sum(task.cost for task in plan.tasks)
        shortened = 0
        for task in plan.tasks:
            self._launcher.time_limit = self._time_limit_s or task.suite.time_limit
            shortened += not self._task(task)
        if shortened:
            self.notes.append(f"{shortened} of {len(plan.tasks)} cells had fewer rounds than "
                              f"planned, to end within {self._budget_s:g} s")

    def _task(self, task: Task) -> bool:
        """All rounds of one cell. False when the time does not suffice for them."""
        gone: set[str] = set()
        cost_of_round = task.cost / task.rounds
        for index in range(task.rounds):
            if index >= ROUNDS_MIN and self._short_of_time():
                self._cost_left -= cost_of_round * (task.rounds - index)
                self._progress.skip(task, task.rounds - index)
                return False
            for subject in order(task.subjects, index):
                self._progress.start(task, index, subject.name)
                if subject.name not in gone and not self._sample(task, subject, index):
                    gone.add(subject.name)
                self._progress.done(task)
            self._cost_left -= cost_of_round
            self._cost_done += cost_of_round
        return True

    def _short_of_time(self) -> bool:
        """Whether the rest, at the pace so far, would end after the budget."""
        if self._budget_s is None:
            return False
        spent = time.monotonic() - self._began
        return spent + self._cost_left * spent / self._cost_done > self._budget_s

    def _sample(self, task: Task, subject, index: int) -> bool:
        """One spawn. False when this subject has no more to say in this cell."""
        suite, cell = task.suite, task.cell
        key = (suite.name, subject.name)
        try:
            if self._late[key] >= TIME_LIMITS_MAX:
                raise Left("left alone after it ran into the time limit in other cells")
            outcome = suite.measure(subject, cell, self._launcher)
        except Left as why:
            self._late[key] += isinstance(why, TimeLimit)
            reason = f"{why} (in round {index + 1} of {task.rounds})" if index else str(why)
            reason = reason.replace(str(self._launcher.build), "BUILD")
            self._results.leave_out(suite.name, subject.name, cell.params, reason)
            where = suite.describe(cell.params)
            self._progress.say(f"left out: {suite.name}, {where}: {subject.name}: {reason}")
            return False
        self._results.add(suite, cell, subject, outcome)
        return True
