"""The samples of a run as they are gathered, and the JSON document made from them."""

import errno
import json
import os
import statistics
import tempfile
from pathlib import Path

from . import disturbance
from .disturbance import Counters
from .estimates import PAIRS_MIN
from .model import Cell, Sample, Subject
from .plan import skipped_entry
from .suite import Suite

SCHEMA = 2
_NUMBER = (int, float)
_DOCUMENT = {"machine": dict, "command": str, "results": list, "skipped": list}
_RESULT = {"suite": str, "subject": str, "version": str, "backend": str, "params": dict,
           "metric": str, "unit": str, "samples": list, "rounds": list, "disturbance": list,
           "min": _NUMBER, "median": _NUMBER}
_SKIPPED = {"suite": str, "subject": str, "params": dict, "reason": str}


class Results:
    """Samples by cell, subject and metric; valid at any moment, so that Ctrl-C loses none."""

    def __init__(self) -> None:
        self._entries: dict[tuple, dict] = {}
        self._history: dict[tuple, list[Counters]] = {}
        self._counters: dict[tuple, list[Counters]] = {}
        self._exact: set[str] = set()
        self.skipped: list[dict] = []
        self.repeated = 0  # samples that were measured again because they were disturbed

    def history(self, cell: Cell, subject: str) -> list[Counters]:
        """The counters of all attempts at samples of this subject in this cell."""
        return self._history.setdefault((cell, subject), [])

    def add(self, suite: Suite, cell: Cell, subject: Subject, round_index: int, sample: Sample,
            counters: Counters = Counters()) -> None:
        """A sample: one value for each metric of the suite."""
        self._counters.setdefault((cell, subject.name), []).append(counters)
        if suite.exact:
            self._exact.add(suite.name)
        for metric in suite.metrics:
            entry = self._entries.setdefault((cell, subject.name, metric.name), {
                "suite": suite.name, "subject": subject.name, "version": sample.version,
                "backend": sample.backend, "params": cell.params, "metric": metric.name,
                "unit": metric.unit, "samples": [], "rounds": []})
            entry["samples"].append(sample.values[metric.name])
            entry["rounds"].append(round_index)

    def skip(self, suite: str, subject: str, params: dict, reason: str) -> None:
        """Records why a subject has no further samples."""
        self.skipped.append(skipped_entry(suite, subject, params, reason))

    def document(self, machine: dict, command: str) -> dict:
        """The document of the samples so far."""
        scores = {key: self._scores(key) for key in self._counters}
        total = sum(len(each) for each in scores.values())
        kept = sum(len(disturbance.least_disturbed(each, PAIRS_MIN)) for each in scores.values())
        machine |= {"samples": total, "samples_repeated": self.repeated,
                    "samples_dropped": total - kept}
        results = [_entry(entry, scores[cell, subject])
                   for (cell, subject, _), entry in self._entries.items()]
        return {"schema": SCHEMA, "machine": machine, "command": command, "results": results,
                "skipped": self.skipped}

    def _scores(self, key: tuple) -> list[float]:
        """How disturbed each sample was, judged by all attempts of the run."""
        counters = self._counters[key]
        if key[0].suite in self._exact:
            return [0.0] * len(counters)
        history = self._history.get(key) or counters
        return [round(disturbance.score(each, history), 2) for each in counters]


def _entry(entry: dict, scores: list[float]) -> dict:
    """The entry with its statistics, which are those of the calm samples."""
    kept = [entry["samples"][at] for at in disturbance.least_disturbed(scores, PAIRS_MIN)]
    return {**entry, "disturbance": scores, "min": min(kept), "median": statistics.median(kept)}


def check_writable(path: Path) -> None:
    """ValueError if the file cannot be written: reported before a run, not after its minutes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except FileExistsError:  # what mkdir raises if a file exists instead of the directory
        raise ValueError(f"cannot write {path}: {os.strerror(errno.ENOTDIR)}") from None
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None


def write(document: dict, path: Path) -> None:
    """Writes the document atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    unfinished.replace(path)


def read(path: Path) -> dict:
    """A document that `write` wrote; ValueError if the file is anything else."""
    text = path.read_bytes()
    try:
        document = json.loads(text)
        valid = document["schema"] == SCHEMA and _has(document, _DOCUMENT) and all(
            _has(each, _RESULT) and each["samples"]
            and len(each["samples"]) == len(each["rounds"]) == len(each["disturbance"])
            for each in document["results"]) and all(
            _has(each, _SKIPPED) for each in document["skipped"])
    except (ValueError, KeyError, TypeError):
        valid = False
    if not valid:
        raise ValueError(f"{path.name} is not a document of schema {SCHEMA}")
    return document


def _has(part: dict, kinds: dict) -> bool:
    """Whether all required members exist and have the right type."""
    return all(isinstance(part[name], kind) for name, kind in kinds.items())
