"""The gate fails if a count of Tambour increased or could not be measured."""

import argparse
import io
import json
import shutil

import pytest
from conftest import made_up
from rich.console import Console
from runner import gate
from runner.model import NotMeasured
from runner.suites import load
from runner.suites.instructions import total_instructions

SUITE = load()["instructions"]
CELL = {"pairs": 1000, "active": 100, "timeouts": False}


def document(values):
    return made_up({name: [value] for name, value in values.items()}, "instructions",
                   "instructions_per_event", **CELL)


def run_gate(now, committed, tolerance=0, skipped=()):
    """(status, output) of the gate for these counts and those that were committed."""
    one = document(now)
    one["skipped"] += skipped
    figures = [{"subject": s, "params": CELL, "value": v} for s, v in committed.items()]
    out = io.StringIO()
    status = gate.compare(SUITE, one, {"schema": 1, "figures": figures}, tolerance,
                          Console(file=out, width=160))
    return status, out.getvalue()


@pytest.mark.parametrize("now, tolerance, status, state", [
    (100, 0, 0, "same"), (101, 0, 1, "worse"), (99, 0, 0, "better"), (102, 2, 0, "same"),
    (103, 2, 1, "worse")])
def test_compare(now, tolerance, status, state):
    got, text = run_gate({"tambour": now}, {"tambour": 100}, tolerance)
    assert got == status
    assert state in text
    assert ("gate: failed" in text) == bool(status)


@pytest.mark.parametrize("now, status", [(6120, 0), (6121, 1)])
def test_large_counts_may_increase_by_two_percent(now, status):
    assert run_gate({"tambour": now}, {"tambour": 6000})[0] == status


def test_subject_that_was_not_requested_is_ignored():
    assert run_gate({"tambour": 100}, {"tambour": 100, "tambour-poll": 5})[0] == 0


def test_failed_measurement_fails_the_gate():
    failed = {"suite": "instructions", "subject": "tambour-poll", "params": CELL,
              "reason": "SIGSEGV"}
    status, text = run_gate({"tambour": 100}, {"tambour": 100, "tambour-poll": 5}, 0, [failed])
    assert status == 1 and "could not be measured" in text


def test_nothing_to_compare_fails_the_gate():
    assert run_gate({"libev": 100}, {"tambour": 100})[0] == 1


@pytest.mark.parametrize("words", [
    ("timers", "--pairs", "10", "--active", "100", "--subjects", "tambour"),
    ("drum", "--timeouts", "yes", "--subjects", "libevent-published")])
def test_gate_without_any_measured_cell_fails(build, tmp_path, words):
    """Another suite is measured; this one has no valid cell, or no such subject."""
    shutil.copy(build.bench / "drum-libevent", build.bench / "drum-libevent-published")
    gate.record(SUITE, document({"tambour": 80}), tmp_path / "committed.json")
    done = build.run(*words, "instructions", "--rounds", "1", "--gate",
                     str(tmp_path / "committed.json"))
    assert done.returncode == 1
    assert "there was nothing to compare" in done.stdout


def test_record_holds_tambour_without_the_control(tmp_path):
    path = tmp_path / "instructions.json"
    one = document({"tambour": 80, "tambour-epoll": 81, "tambour-aa": 80, "libev": 170})
    assert gate.record(SUITE, one, path) == 2
    assert len(path.read_text().splitlines()) == 4
    committed = gate.read(path)
    assert {e["subject"]: e["value"] for e in committed["figures"]} == {"tambour": 80,
                                                                   "tambour-epoll": 81}
    out = Console(file=io.StringIO())
    assert gate.compare(SUITE, one, committed, 0, out) == 0
    assert gate.compare(SUITE, document({"tambour": 81}), committed, 0, out) == 1


def test_record_is_not_written_without_tambour(tmp_path):
    path = tmp_path / "instructions.json"
    options = argparse.Namespace(gate=None, record=path, tolerance=None)
    out = Console(file=io.StringIO())
    assert gate.conclude(SUITE, document({"libev": 1}), options, out) == 1
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2, "figures": []}',
                                  '{"schema": 1, "figures": []}',
                                  '{"schema": 1, "figures": [{"subject": "tambour"}]}'])
def test_file_that_is_not_a_record_is_rejected(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        gate.read(path)


def test_sample_is_the_difference_of_two_runs(build, tmp_path, monkeypatch):
    """With a fake valgrind that counts 77 instructions for each write."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "valgrind").write_text(VALGRIND)
    (tools / "valgrind").chmod(0o755)
    monkeypatch.setattr("runner.child.ENVIRONMENT", {"PATH": f"{tools}:/usr/bin", "LC_ALL": "C"})
    from runner import child, limits, model

    cpus = limits.allowed_cpus()
    launcher = child.Launcher(build.root, cpus, cpus[-1])
    cell = model.Cell("instructions", tuple(CELL.items()))
    subject = next(s for s in SUITE.subjects if s.name == "tambour")
    measured = SUITE.measure(subject, cell, launcher)
    assert measured.values == {"instructions_per_event": 77}


VALGRIND = """#!/usr/bin/python3
import subprocess, sys
out = next(w for w in sys.argv if w.startswith("--callgrind-out-file=")).split("=")[1]
program = sys.argv[4:]
writes = int(program[program.index("--writes") + 1])
with open(out, "w") as file:
    print(f"summary: 5\\nfn=(1) main\\n1 5\\n\\ntotals: {123456 + 77 * writes}", file=file)
sys.exit(subprocess.run(program).returncode)
"""


def test_total_of_callgrind(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(NotMeasured):
        total_instructions(out)
    out.write_text("events: Ir\nfn=(1)\n1 20\n")
    with pytest.raises(NotMeasured):
        total_instructions(out)
    out.write_text("events: Ir\nsummary: 42\n\ntotals: 43\n")
    assert total_instructions(out) == 43


def test_record_is_json(tmp_path):
    path = tmp_path / "instructions.json"
    gate.record(SUITE, document({"tambour": 80}), path)
    assert json.loads(path.read_text())["metric"] == "instructions_per_event"
