"""Turns requests into tasks: cells that this machine can run, and reasons for what is skipped."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path

from .limits import Limits
from .model import Cell, NotMeasured, Subject
from .subjects import why_absent, with_control
from .suite import Suite

SPAWN_COST_S = 0.01  # of a process, beside what the suite estimates for its measurement


@dataclass
class Request:
    """One pass over one suite: values for parameters that differ from the defaults."""

    suite: Suite
    values: dict[str, tuple] = field(default_factory=dict)
    rounds: int | None = None


@dataclass
class Task:
    """One cell, the subjects that run it, and the number of rounds."""

    suite: Suite
    cell: Cell
    subjects: list[Subject]
    rounds: int

    @property
    def cost(self) -> float:
        """The estimated seconds of one run of one subject."""
        return SPAWN_COST_S + self.suite.cost(self.cell)

    @property
    def total_cost(self) -> float:
        return self.cost * self.rounds * len(self.subjects)


@dataclass
class Plan:
    """What will run, what is skipped and why, and what was changed."""

    tasks: list[Task] = field(default_factory=list)
    skipped: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """The estimated seconds of the whole run."""
        return sum(task.total_cost for task in self.tasks)


def skipped_entry(suite: str, subject: str, params: dict, reason: str) -> dict:
    """An entry of the document's `skipped`; params is empty if it applies to the whole suite."""
    return {"suite": suite, "subject": subject, "params": params, "reason": reason}


def make(requests: list[Request], names: list[str] | None, build: Path, limits: Limits,
         quick: bool = False) -> Plan:
    """The plan for these requests.

    `names` limits the subjects; without them, `quick` limits each suite to its quick subjects.
    """
    plan = Plan()
    present: dict[str, list[Subject]] = {}
    for request in requests:
        suite = request.suite
        if suite.name not in present:
            chosen = names or (suite.quick_subjects if quick else None)
            present[suite.name] = _present(suite, chosen, build, plan)
        for cell in _cells(request, limits, plan):
            supported = []
            for subject in present[suite.name]:
                reason = suite.unsupported(subject, cell)
                if reason is None:
                    supported.append(subject)
                else:
                    plan.skipped.append(skipped_entry(suite.name, subject.name, cell.params,
                                                      reason))
            if supported and all(task.cell != cell for task in plan.tasks):
                rounds = request.rounds or suite.rounds_of(cell)
                plan.tasks.append(Task(suite, cell, with_control(supported), rounds))
    return plan


def _present(suite: Suite, names, build: Path, plan: Plan) -> list[Subject]:
    """The subjects of a suite that exist in the build; the others are recorded as skipped."""
    unavailable = suite.unavailable()
    present = []
    for subject in suite.subjects:
        if names is not None and subject.name not in names:
            continue
        reason = unavailable or why_absent(build, suite.program or suite.name, subject)
        if reason is None:
            present.append(subject)
        else:
            plan.skipped.append(skipped_entry(suite.name, subject.name, {}, reason))
    return present


def _cells(request: Request, limits: Limits, plan: Plan) -> list[Cell]:
    """Every combination of the values, as this machine can run it, each once."""
    suite = request.suite
    lists = [request.values.get(p.name, p.default) for p in suite.parameters]
    cells: dict[Cell, None] = {}
    changed: dict[tuple[str, int], dict[int, None]] = {}
    for values in itertools.product(*lists):
        requested = {p.name: value for p, value in zip(suite.parameters, values)
                     if not (p.silent and value == p.default[0])}
        try:
            adjusted = suite.adjust(dict(requested), limits)
        except NotMeasured as reason:
            _note(plan, f"{suite.name}: skipped: {reason}")
            continue
        for name, value in adjusted.items():
            if value != requested.get(name, value):  # a name that adjust() added was not requested
                changed.setdefault((name, value), {})[requested[name]] = None
        cells[Cell(suite.name, tuple(adjusted.items()))] = None
    for (name, value), originals in changed.items():
        listed = " and ".join(f"{each:,}" for each in originals)
        _note(plan, f"{suite.name}: {name} {listed} reduced to {value:,}: "
                    f"{suite.adjusted_because(limits)}")
    return list(cells)


def _note(plan: Plan, note: str) -> None:
    if note not in plan.notes:
        plan.notes.append(note)
