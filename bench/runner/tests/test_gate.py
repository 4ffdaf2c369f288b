"""The gate: shut when ours got worse or can't be measured, open otherwise."""

import argparse
import io
import json
import shutil

import pytest
from conftest import made_up
from rich.console import Console
from runner import gate
from runner.model import Left
from runner.suites import load
from runner.suites.instructions import total_instructions

SUITE = load()["instructions"]
CELL = {"pairs": 1000, "active": 100, "timeouts": False}


def document(values):
    return made_up({name: [value] for name, value in values.items()}, "instructions",
                   "instructions_per_event", **CELL)


def played(now, held, tolerance=0, left_out=()):
    """(status, what was printed) of a run with these figures against those held."""
    one = document(now)
    one["left_out"] += left_out
    figures = [{"subject": s, "params": CELL, "value": v} for s, v in held.items()]
    out = io.StringIO()
    status = gate.compare(SUITE, one, {"schema": 1, "figures": figures}, tolerance,
                          Console(file=out, width=160))
    return status, out.getvalue()


@pytest.mark.parametrize("now, tolerance, status, said", [
    (100, 0, 0, "same"), (101, 0, 1, "worse"), (99, 0, 0, "better"), (102, 2, 0, "same"),
    (103, 2, 1, "worse")])
def test_compare(now, tolerance, status, said):
    got, text = played({"tambour": now}, {"tambour": 100}, tolerance)
    assert got == status
    assert said.split()[0] in text or (tolerance and not status)
    assert ("gate: shut" in text) == bool(status)


def test_what_was_not_asked_for_does_not_shut_it():
    assert played({"tambour": 100}, {"tambour": 100, "tambour-poll": 5})[0] == 0


def test_what_was_asked_for_and_failed_shuts_it():
    failed = {"suite": "instructions", "subject": "tambour-poll", "params": CELL, "why": "SIGSEGV"}
    status, text = played({"tambour": 100}, {"tambour": 100, "tambour-poll": 5}, 0, [failed])
    assert status == 1 and "could not be measured" in text


def test_a_gate_that_compares_nothing_is_shut():
    assert played({"libev": 100}, {"tambour": 100})[0] == 1


@pytest.mark.parametrize("words", [
    ("timers", "--pairs", "10", "--active", "100", "--subjects", "tambour"),
    ("drum", "--timeouts", "yes", "--subjects", "libevent-published")])
def test_what_leaves_no_trace_shuts_it(build, tmp_path, words):
    """Another suite is measured; of this one no cell can be, or it has no such subject."""
    shutil.copy(build.bench / "drum-libevent", build.bench / "drum-libevent-published")
    gate.record(SUITE, document({"tambour": 80}), tmp_path / "held.json")
    done = build.run(*words, "instructions", "--rounds", "1", "--gate",
                     str(tmp_path / "held.json"))
    assert done.returncode == 1
    assert "nothing to compare was measured" in done.stdout


def test_record_keeps_ours_and_is_read_back(tmp_path):
    path = tmp_path / "instructions.json"
    one = document({"tambour": 80, "tambour-epoll": 81, "libev": 170})
    assert gate.record(SUITE, one, path) == 2
    assert len(path.read_text().splitlines()) == 4
    held = gate.read(path)
    assert {e["subject"]: e["value"] for e in held["figures"]} == {"tambour": 80,
                                                                   "tambour-epoll": 81}
    out = Console(file=io.StringIO())
    assert gate.compare(SUITE, one, held, 0, out) == 0
    assert gate.compare(SUITE, document({"tambour": 81}), held, 0, out) == 1


def test_nothing_of_ours_writes_no_record(tmp_path):
    path = tmp_path / "instructions.json"
    options = argparse.Namespace(gate=None, record=path, tolerance=None)
    out = Console(file=io.StringIO())
    assert gate.conclude(SUITE, document({"libev": 1}), options, out) == 1
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2, "figures": []}',
                                  '{"schema": 1, "figures": []}',
                                  '{"schema": 1, "figures": [{"subject": "tambour"}]}'])
def test_a_file_that_is_no_record(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        gate.read(path)


def test_a_sample_is_the_difference_of_two_runs(build, tmp_path, monkeypatch):
    """With a valgrind that counts 77 instructions for each write."""
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
    assert measured.samples == {"instructions_per_event": 77}


VALGRIND = """#!/usr/bin/python3
import subprocess, sys
out = next(w for w in sys.argv if w.startswith("--callgrind-out-file=")).split("=")[1]
program = sys.argv[4:]
writes = int(program[program.index("--writes") + 1])
with open(out, "w") as file:
    print(f"summary: 5\\nfn=(1) main\\n1 5\\n\\ntotals: {123456 + 77 * writes}", file=file)
sys.exit(subprocess.run(program).returncode)
"""


def test_callgrinds_total(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(Left):
        total_instructions(out)
    out.write_text("events: Ir\nfn=(1)\n1 20\n")
    with pytest.raises(Left):
        total_instructions(out)
    out.write_text("events: Ir\nsummary: 42\n\ntotals: 43\n")
    assert total_instructions(out) == 43


def test_a_record_is_json(tmp_path):
    path = tmp_path / "instructions.json"
    gate.record(SUITE, document({"tambour": 80}), path)
    assert json.loads(path.read_text())["metric"] == "instructions_per_event"
