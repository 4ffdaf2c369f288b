"""A run and its subjects: schedule, environment, time limits, failures, disturbed samples."""

import io
import os
import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import entry
from rich.console import Console
from runner import child, disturbance, session
from runner.child import Launcher
from runner.disturbance import Counters
from runner.estimates import PAIRS_MIN
from runner.model import Cell, Metric, Sample, Subject
from runner.plan import Plan, Task
from runner.progress import Progress
from runner.results import Results
from runner.suite import Suite


def survives(pid_file: Path) -> bool:
    """Whether the process still exists after a minute: a killed process may take a while to end."""
    end = time.monotonic() + 60
    while is_running(pid_file):
        if time.monotonic() > end:
            return True
        time.sleep(0.01)
    return False


def is_running(pid_file: Path) -> bool:
    try:
        state = Path(f"/proc/{pid_file.read_text().strip()}/stat").read_text().rsplit(")")[1]
        return state.split()[0] not in "XZ"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_each_round_runs_every_subject_once_in_random_order(monkeypatch):
    run = ScriptedRun(monkeypatch, [QUIET])
    names = ("tambour", "libev", "asio")
    run.run(8, *names)
    rounds = [tuple(run.measured[at:at + 3]) for at in range(0, 24, 3)]
    assert len(run.measured) == 24 and all(set(each) == set(names) for each in rounds)
    assert len(set(rounds)) > 1


def test_control_runs_in_each_round(build):
    build.run("drum", "--subjects", "tambour,libev", "--rounds", "3")
    assert Counter(each["peer"] for each in build.spawned()) == {"tambour": 6, "libev": 3}
    samples = {e["subject"]: len(e["samples"]) for e in build.document()["results"]}
    assert samples == {"tambour": 3, "tambour-aa": 3, "libev": 3}


def test_random_order_gives_every_subject_every_position():
    generator = random.Random(1)
    positions = Counter((name, order.index(name)) for order in
                        (session.order(["a", "b", "c"], generator) for _ in range(300))
                        for name in "abc")
    assert len(positions) == 9 and all(70 < count < 130 for count in positions.values())


def test_rounds_of_all_cells_are_interleaved():
    few, many = fake_task("few", 2), fake_task("many", 4)
    rounds = [(each.task.suite, each.index) for each in session.schedule([few, many])]
    assert rounds == [("many", 0), ("few", 0), ("many", 1), ("many", 2), ("few", 1), ("many", 3)]


def fake_task(name: str, rounds: int):
    return Task(name, Cell(name, ()), [Subject("tambour", "tambour")], rounds)


def test_subject_runs_pinned_in_a_clean_environment(build, monkeypatch):
    monkeypatch.setenv("LIBEV_FLAGS", "1")
    monkeypatch.setenv("TAMBOUR_BACKEND", "select")
    cpu = min(os.sched_getaffinity(0))
    build.run("drum", "--subjects", "libev,tambour,tambour-uring", "--rounds", "1",
              "--cpu", str(cpu))
    plain, ours, control, uring = sorted(build.spawned(), key=lambda e: (e["peer"], len(e["env"])))
    assert plain["env"] == ours["env"] == control["env"]
    assert set(plain["env"]) - {"LC_CTYPE"} == {"PATH", "LC_ALL"}
    assert uring["env"]["TAMBOUR_BACKEND"] == "io_uring"
    assert plain["cpus"] == [cpu]
    assert plain["files"][0] == plain["files"][1]
    assert plain["words"] == ["--pairs", "1000", "--active", "100", "--writes", "10000",
                              "--iterations", "2"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_runner_stays_on_the_processors_for_clients(build):
    """Programs with two ends read the runner's affinity to find the processors they may use."""
    build.run("drum", "--subjects", "libev", "--rounds", "1")
    last = max(os.sched_getaffinity(0))
    assert build.spawned()[0]["runners_cpus"] == sorted(os.sched_getaffinity(0) - {last})


def test_default_is_the_last_processor(build):
    build.run("drum", "--subjects", "libev", "--rounds", "1")
    assert build.spawned()[0]["cpus"] == [max(os.sched_getaffinity(0))]


def test_failing_subject_is_skipped_and_the_others_continue(build):
    build.behave(libev={"fail": "no such luck"})
    done = build.run("drum", "--subjects", "libev,asio", "--rounds", "3")
    assert done.returncode == 0
    document = build.document()
    assert {e["subject"] for e in document["results"]} == {"asio"}
    assert len(entry(document, "asio", "event_ns")["samples"]) == 3
    assert [(e["subject"], e["reason"]) for e in document["skipped"]] == [
        ("libev", "exit 1: warning: of no interest; no such luck")]
    assert Counter(e["peer"] for e in build.spawned()) == {"asio": 3, "libev": 1}
    assert "no such luck" in done.stdout
    assert "no such luck" in build.page()


def test_failure_has_the_last_lines():
    said = "[warn] slow\n" * 9 + "error: listening: Address already in use\n" \
        "error: the server does not listen\n"
    assert child._failure(1, said) == ("exit 1: [warn] slow; error: listening: Address already in "
                                       "use; error: the server does not listen")
    assert len(child._failure(1, "".join(f"{i}{'x' * 500}\n" for i in range(9)))) < 700


def test_failure_has_no_stack_trace():
    said = "==7== Illegal opcode\n==7==    at 0x12: f (f.cc:3)\n==7==    by 0x34: main (m.cc:1)\n"
    assert child._failure(-4, said) == "killed by SIGILL: Illegal opcode"
    assert child._failure(3, "") == "exit 3 without a message"


def test_run_fails_if_nothing_was_measured(build):
    build.behave(libev={"fail": "no such luck"})
    done = build.run("drum", "--subjects", "libev")
    assert done.returncode == 1
    assert "nothing was measured" in done.stderr
    assert build.document()["results"] == []
    assert "no such luck" in build.page()


@pytest.mark.parametrize("line, reason", [
    ("what?", "no line of JSON"),
    ("", "no line of JSON"),
    ('{"iterations": []}', "no line of JSON"),
    ('{"iterations": [{"event_ns": 1}]}', "no valid round_us"),
    ('{"iterations": [{"event_ns": NaN, "round_us": 1}]}', "no valid event_ns"),
    ('{"iterations": [{"event_ns": "1", "round_us": 1}]}', "no valid event_ns"),
    ('{"iterations": [{"event_ns": -1, "round_us": 1}]}', "no valid event_ns"),
])
def test_invalid_output_is_not_a_sample(build, line, reason):
    build.behave(libev={"say": line})
    build.run("drum", "--subjects", "libev,asio", "--rounds", "1")
    document = build.document()
    assert reason in document["skipped"][0]["reason"]
    assert {e["subject"] for e in document["results"]} == {"asio"}


def test_fallback_to_another_backend_is_not_reported(build):
    build.behave(tambour={"backend": "epoll"})
    build.run("drum", "--subjects", "tambour,tambour-uring,tambour-epoll", "--rounds", "1")
    document = build.document()
    assert {e["subject"] for e in document["results"]} == {"tambour", "tambour-epoll",
                                                           "tambour-aa"}
    assert [(e["subject"], e["reason"]) for e in document["skipped"]] == [
        ("tambour-uring", "asked for io_uring, ran on epoll")]


def test_hanging_subject_is_killed_with_its_process_group(build):
    build.behave(libev={"hang": 1})
    done = build.run("drum", "--subjects", "libev,asio", "--rounds", "1", "--time-limit", "2",
                     "--pairs", "10,20,30", "--active", "1")
    assert done.returncode == 0
    reasons = [e["reason"] for e in build.document()["skipped"] if e["subject"] == "libev"]
    assert reasons[:2] == ["killed at its time limit of 2 s"] * 2
    assert reasons[2].startswith("skipped after it exceeded the time limit")
    assert not survives(build.bench / "child.pid") and not survives(build.bench / "grandchild.pid")


def test_budget_limits_rounds_but_keeps_enough_for_an_interval(build):
    build.behave(libev={"slow": 0.2})
    build.run("drum", "--subjects", "libev", "--rounds", "50", "--budget", "1",
              "--pairs", "10,20", "--active", "1")
    counts = [len(e["samples"]) for e in build.document()["results"]]
    assert counts == [PAIRS_MIN] * 4
    assert any(re.search(r"2 of 2 cells had fewer rounds", note)
               for note in build.document()["machine"]["notes"])


def test_run_announces_its_size_and_shows_progress(build):
    done = build.run("drum", "--subjects", "libev", "--rounds", "2")
    assert done.stdout.startswith("1 suite, 1 cell, 2 rounds of each: about 1 s\n")
    assert re.search(r"round 1/2, drum: 1,000 pairs, 100 active.*: libev", done.stdout)


class ScriptedRun:
    """A session of one cell in which the counters of each sample are given."""

    def __init__(self, monkeypatch, deltas: list[Counters], repeats_share: float = 10.0) -> None:
        self.results, self.measured = Results(), []
        self._deltas, self._total, self._ends = deltas, Counters(), False
        monkeypatch.setattr(disturbance, "read_counters", self._read)
        monkeypatch.setattr(session, "REPEATS_SHARE", repeats_share)
        self.suite = Scripted(self)
        self.cell = Cell("scripted", ())

    def _read(self, _cpus):
        """Called before and after each measurement."""
        if self._ends:
            delta = self._deltas[min(len(self.measured), len(self._deltas)) - 1]
            self._total = Counters(self._total.steal_ticks + delta.steal_ticks,
                                   self._total.switches + delta.switches)
        self._ends = not self._ends
        return self._total

    def run(self, rounds: int, *names: str) -> list[dict]:
        launcher = Launcher(Path("/nowhere"), [0], 0)
        one = session.Session(launcher, self.results, Progress(Console(file=io.StringIO()), 1))
        subjects = [Subject(name, name) for name in names or ("tambour",)]
        one.run(Plan([Task(self.suite, self.cell, subjects, rounds)]))
        return self.results.document({}, "")["results"]


class Scripted(Suite):
    """Each sample is the number of the measurement."""

    name = "scripted"
    metrics = (Metric("event_ns", "ns", "event"),)

    def __init__(self, run: ScriptedRun) -> None:
        self._run = run

    def measure(self, subject, cell, launcher):
        self._run.measured.append(subject.name)
        return Sample("1", "epoll", {"event_ns": len(self._run.measured)})


QUIET, BUSY, STEAL = Counters(0, 1), Counters(0, 50), Counters(3, 1)


@pytest.mark.parametrize("disturbed", [BUSY, STEAL])
def test_disturbed_sample_is_measured_again_in_the_same_round(monkeypatch, disturbed):
    run = ScriptedRun(monkeypatch, [QUIET] * 5 + [disturbed] + [QUIET] * 20)
    entry_, = run.run(rounds=8)
    assert entry_["samples"] == [1, 2, 3, 4, 5, 7, 8, 9]
    assert entry_["rounds"] == list(range(8)) and max(entry_["disturbance"]) <= 1
    assert run.results.repeated == 1


def test_sample_that_stays_disturbed_is_dropped(monkeypatch):
    run = ScriptedRun(monkeypatch, [QUIET] * 8 + [BUSY] * 3 + [QUIET] * 20)
    entry_, = run.run(rounds=10)
    assert entry_["samples"] == [*range(1, 9), 11, 12]
    assert [n for n, each in enumerate(entry_["disturbance"]) if each > 1] == [8]
    assert entry_["median"] == 5 and run.results.repeated == 2
    assert run.results.document({}, "")["machine"]["samples_dropped"] == 1


def test_repeating_is_bounded_by_its_share_of_the_time(monkeypatch):
    run = ScriptedRun(monkeypatch, [QUIET] * 8 + [BUSY] + [QUIET] * 20, repeats_share=0.0)
    entry_, = run.run(rounds=10)
    assert entry_["samples"] == list(range(1, 11)) and entry_["disturbance"][8] > 1
    assert run.results.repeated == 0


def test_permanently_busy_machine_keeps_its_samples(monkeypatch):
    varied = [Counters(2, 40 + 7 * n % 15) for n in range(40)]
    run = ScriptedRun(monkeypatch, varied)
    entry_, = run.run(rounds=20)
    assert len(entry_["samples"]) == 20 and max(entry_["disturbance"]) <= 1


def test_counts_are_not_measured_again(monkeypatch):
    run = ScriptedRun(monkeypatch, [QUIET] * 5 + [BUSY] * 20)
    run.suite.exact = True
    entry_, = run.run(rounds=8)
    assert entry_["disturbance"] == [0.0] * 8 and run.results.repeated == 0
