"""From what was asked to what will be run: cells clamped to the machine, merged, with reasons."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path

from .limits import Limits
from .model import Cell, Left, Subject
from .subjects import why_absent
from .suite import Suite


@dataclass
class Request:
    """One pass over one suite: values for parameters that differ from the defaults."""

    suite: Suite
    values: dict[str, tuple] = field(default_factory=dict)
    rounds: int | None = None


@dataclass
class Task:
    """One cell and who plays it, how many rounds."""

    suite: Suite
    cell: Cell
    subjects: list[Subject]
    rounds: int

    @property
    def cost(self) -> float:
        return self.suite.cost(self.cell) * self.rounds * len(self.subjects)


@dataclass
class Plan:
    """What will be run, what will not and why, and what was changed."""

    tasks: list[Task] = field(default_factory=list)
    left_out: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def left_out(suite: str, subject: str, params: dict, why: str) -> dict:
    """An entry of the document's `left_out`; params is empty where it is the whole suite."""
    return {"suite": suite, "subject": subject, "params": params, "why": why}


def make(requests: list[Request], names: list[str] | None, build: Path, limits: Limits) -> Plan:
    """The plan for these requests, with only the named subjects where any are named."""
    plan = Plan()
    present: dict[str, list[Subject]] = {}
    for request in requests:
        suite = request.suite
        if suite.name not in present:
            present[suite.name] = _present(suite, names, build, plan)
        cells = _cells(request, limits, plan)
        for cell in cells:
            fit = []
            for subject in present[suite.name]:
                why = suite.unfit(subject, cell)
                if why is None:
                    fit.append(subject)
                else:
                    plan.left_out.append(left_out(suite.name, subject.name, cell.params, why))
            if fit and all(task.cell != cell for task in plan.tasks):
                rounds = request.rounds or suite.rounds_of(cell)
                plan.tasks.append(Task(suite, cell, fit, rounds))
    return plan


def chosen(suite: Suite, names: list[str] | None) -> list[Subject]:
    """The suite's own choice of subjects, or of all it knows those that are named."""
    if names is None:
        return list(suite.subjects)
    return [each for each in suite.subjects if each.name in names]


def _present(suite: Suite, names: list[str] | None, build: Path, plan: Plan) -> list[Subject]:
    """The subjects of a suite that can be started here; the others go to left_out."""
    no_suite = suite.unavailable()
    present = []
    for subject in chosen(suite, names):
        why = no_suite or why_absent(build, suite.program or suite.name, subject)
        if why is None:
            present.append(subject)
        else:
            plan.left_out.append(left_out(suite.name, subject.name, {}, why))
    return present


def _cells(request: Request, limits: Limits, plan: Plan) -> list[Cell]:
    """Every combination of the values, as this machine can run it, each once."""
    suite = request.suite
    lists = [request.values.get(p.name, p.default) for p in suite.parameters]
    cells: dict[Cell, None] = {}
    changed: dict[tuple[str, int], dict[int, None]] = {}
    for values in itertools.product(*lists):
        asked = {p.name: value for p, value in zip(suite.parameters, values)
                 if not (p.silent and value == p.default[0])}
        try:
            ran = suite.adjust(dict(asked), limits)
        except Left as why:
            _note(plan, f"{suite.name}: skipped: {why}")
            continue
        for name, value in ran.items():
            if value != asked.get(name, value):  # What it adds, nobody asked for.
                changed.setdefault((name, value), {})[asked[name]] = None
        cells[Cell(suite.name, tuple(ran.items()))] = None
    for (name, value), asked_values in changed.items():
        listed = " and ".join(f"{each:,}" for each in asked_values)
        _note(plan, f"{suite.name}: asked for {name} {listed}, ran {value:,}: "
                    f"{suite.adjusted_why(limits)}")
    return list(cells)


def _note(plan: Plan, note: str) -> None:
    if note not in plan.notes:
        plan.notes.append(note)
