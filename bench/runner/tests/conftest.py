"""A build directory with fake subjects, and bench/run started on it as a user would."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(BENCH))
PEERS = ("tambour", "floor", "epoll", "libev", "libevent", "libuv", "asio")


class Build:
    """A build directory whose subjects behave as configured."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bench = root / "bench"
        self.bench.mkdir()
        for program in ("drum", "timers"):
            for peer in PEERS:
                shutil.copy(Path(__file__).parent / "fake_subject.py",
                            self.bench / f"{program}-{peer}")
                (self.bench / f"{program}-{peer}").chmod(0o755)
        (self.bench / "peers.json").write_text(json.dumps(
            {"muduo": {"found": False, "why": "no muduo here"}, "libev": {"found": True}}))
        self.behave()

    def behave(self, **peers) -> None:
        """Configures the subjects; see fake_subject.py."""
        (self.bench / "behaviour.json").write_text(json.dumps(peers))

    def command(self, *words: str) -> list[str]:
        return [str(BENCH / "run"), *words, "--build", str(self.root)]

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=300,
                              check=False)

    def document(self) -> dict:
        return json.loads((self.root / "bench-report" / "results.json").read_text())

    def page(self) -> str:
        return (self.root / "bench-report" / "index.html").read_text(encoding="utf-8")

    def spawned(self) -> list[dict]:
        log = self.bench / "spawned.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def build(tmp_path) -> Build:
    (tmp_path / "build").mkdir()
    return Build(tmp_path / "build")


def entry(document: dict, subject: str, metric: str, **params) -> dict:
    """The only entry of a document that matches."""
    found = [e for e in document["results"] if e["subject"] == subject and e["metric"] == metric
             and all(e["params"].get(n) == v for n, v in params.items())]
    assert len(found) == 1, found
    return found[0]


def made_up(values: dict, suite: str = "drum", metric: str = "event_ns", **params) -> dict:
    """A document with these samples by subject, one a round, all in one cell."""
    from runner import model, results
    from runner.suites import load

    gathered, suite = results.Results(), load()[suite]
    cell = model.Cell(suite.name, tuple(params.items()))
    for subject, samples in values.items():
        for index, sample in enumerate(samples):
            gathered.add(suite, cell, model.Subject(subject, subject), index, model.Sample(
                "1", "epoll", {m.name: sample if m.name == metric else 1.0
                               for m in suite.metrics}))
    return gathered.document({"notes": []}, "bench/run")
