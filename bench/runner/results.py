"""What was measured, as it is gathered, and the JSON document it becomes."""

import errno
import json
import os
import statistics
import tempfile
from pathlib import Path

from .model import Cell, Outcome, Subject
from .plan import left_out
from .suite import Suite

SCHEMA = 1
_NUMBER = (int, float)
_DOCUMENT = {"machine": dict, "command": str, "results": list, "left_out": list}
_RESULT = {"suite": str, "subject": str, "version": str, "backend": str, "params": dict,
           "metric": str, "unit": str, "samples": list, "min": _NUMBER, "median": _NUMBER}
_LEFT_OUT = {"suite": str, "subject": str, "params": dict, "why": str}


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


def check_writable(path: Path) -> None:
    """ValueError when no file can be written there: told before a run, not after its minutes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except FileExistsError:  # mkdir's word for a file where a directory should be
        raise ValueError(f"can't write {path}: {os.strerror(errno.ENOTDIR)}") from None
    except OSError as error:
        raise ValueError(f"can't write {path}: {error.strerror}") from None


def write(document: dict, path: Path) -> None:
    """Write the document whole or not at all: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    unfinished.replace(path)


def read(path: Path) -> dict:
    """A document that `write` wrote; ValueError when it is something else."""
    text = path.read_bytes()
    try:
        document = json.loads(text)
        sound = document["schema"] == SCHEMA and _has(document, _DOCUMENT) and all(
            _has(each, _RESULT) and each["samples"] for each in document["results"]) and all(
            _has(each, _LEFT_OUT) for each in document["left_out"])
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise ValueError(f"{path.name} is not a document of schema {SCHEMA}")
    return document


def _has(part: dict, kinds: dict) -> bool:
    """Whether what is needed is there, each of its kind."""
    return all(isinstance(part[name], kind) for name, kind in kinds.items())
