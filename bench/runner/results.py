"""What was measured, as it is gathered, and the JSON document it becomes."""

import json
import statistics
from pathlib import Path

from .model import Cell, Outcome, Subject
from .plan import left_out
from .suite import Suite

SCHEMA = 1


class Results:
    """Samples by suite, cell, subject and metric; complete at any moment, so Ctrl-C loses none."""

    def __init__(self) -> None:
        self._entries: dict[tuple, dict] = {}
        self.left_out: list[dict] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, suite: Suite, cell: Cell, subject: Subject, outcome: Outcome) -> None:
        """One sample for each metric of the suite."""
        for metric in suite.metrics:
            entry = self._entries.setdefault((cell, subject.name, metric.name), {
                "suite": suite.name, "subject": subject.name, "version": outcome.version,
                "backend": outcome.backend, "params": cell.params, "metric": metric.name,
                "unit": metric.unit, "samples": []})
            entry["samples"].append(outcome.samples[metric.name])

    def leave_out(self, suite: str, subject: str, params: dict, why: str) -> None:
        """Record why a subject has no (more) samples."""
        self.left_out.append(left_out(suite, subject, params, why))

    def document(self, machine: dict, command: str) -> dict:
        """The document, with what is there now."""
        results = [{**entry, "min": min(entry["samples"]),
                    "median": statistics.median(entry["samples"])}
                   for entry in self._entries.values()]
        return {"schema": SCHEMA, "machine": machine, "command": command, "results": results,
                "left_out": self.left_out}


def write(document: dict, path: Path) -> None:
    """Write the document whole or not at all: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    unfinished.replace(path)


def read(path: Path) -> dict:
    """A document that `write` wrote; ValueError when it is something else."""
    document = json.loads(path.read_text())
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{path.name} is not a document of schema {SCHEMA}")
    return document
