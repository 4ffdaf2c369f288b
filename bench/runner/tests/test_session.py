"""What a run does with its children: order, environment, time limits, failures."""

import os
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import entry
from runner import child, session


def alive(pid_file: Path) -> bool:
    try:
        state = Path(f"/proc/{pid_file.read_text().strip()}/stat").read_text().rsplit(")")[1]
        return state.split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_subjects_are_interleaved_and_rotated(build):
    assert build.run("drum", "--subjects", "libev,asio,tambour", "--rounds", "4",
                     "--pairs", "10", "--active", "1").returncode == 0
    order = [each["peer"] for each in build.spawned()]
    assert order == ["tambour", "libev", "asio", "libev", "asio", "tambour",
                     "asio", "tambour", "libev", "tambour", "libev", "asio"]


def test_order_gives_everyone_every_place():
    places = Counter((name, rounds.index(name)) for rounds in
                     (session.order(["a", "b", "c"], n) for n in range(3)) for name in "abc")
    assert set(places.values()) == {1} and len(places) == 9


def test_a_child_gets_a_clean_pinned_world(build, monkeypatch):
    monkeypatch.setenv("LIBEV_FLAGS", "1")
    monkeypatch.setenv("TAMBOUR_BACKEND", "select")
    cpu = min(os.sched_getaffinity(0))
    build.run("drum", "--subjects", "libev,tambour,tambour-uring", "--rounds", "1",
              "--cpu", str(cpu))
    plain, ours, uring = sorted(build.spawned(), key=lambda e: (e["peer"], len(e["env"])))
    assert plain["env"] == ours["env"]
    assert set(plain["env"]) - {"LC_CTYPE"} == {"PATH", "LC_ALL"}
    assert uring["env"]["TAMBOUR_BACKEND"] == "io_uring"
    assert plain["cpus"] == [cpu]
    assert plain["files"][0] == plain["files"][1]
    assert plain["words"] == ["--pairs", "1000", "--active", "100", "--writes", "10000",
                              "--iterations", "2"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_the_runner_is_where_the_other_end_may_be(build):
    """A child that is pinned to one processor looks there for the others that it may use."""
    build.run("drum", "--subjects", "libev", "--rounds", "1")
    last = max(os.sched_getaffinity(0))
    assert build.spawned()[0]["runners_cpus"] == sorted(os.sched_getaffinity(0) - {last})


def test_the_last_cpu_is_the_default(build):
    build.run("drum", "--subjects", "libev", "--rounds", "1")
    assert build.spawned()[0]["cpus"] == [max(os.sched_getaffinity(0))]


def test_a_failing_child_is_recorded_and_the_others_go_on(build):
    build.behave(libev={"fail": "no such luck"})
    done = build.run("drum", "--subjects", "libev,asio", "--rounds", "3")
    assert done.returncode == 0
    document = build.document()
    assert {e["subject"] for e in document["results"]} == {"asio"}
    assert len(entry(document, "asio", "event_ns")["samples"]) == 3
    assert [(e["subject"], e["why"]) for e in document["left_out"]] == [
        ("libev", "exit 1: warning: of no interest; no such luck")]
    assert Counter(e["peer"] for e in build.spawned()) == {"asio": 3, "libev": 1}
    assert "no such luck" in done.stdout and "no such luck" in build.page()


def test_the_cause_stands_before_the_last_words():
    said = "[warn] slow\n" * 9 + "error: listening: Address already in use\n" \
        "error: the server does not listen\n"
    assert child._failure(1, said) == ("exit 1: [warn] slow; error: listening: Address already in "
                                       "use; error: the server does not listen")
    assert len(child._failure(1, "".join(f"{i}{'x' * 500}\n" for i in range(9)))) < 700


def test_a_stack_trace_is_no_reason():
    said = "==7== Illegal opcode\n==7==    at 0x12: f (f.cc:3)\n==7==    by 0x34: main (m.cc:1)\n"
    assert child._failure(-4, said) == "killed by SIGILL: Illegal opcode"
    assert child._failure(3, "") == "exit 3, and said nothing"


def test_when_nothing_was_measured_the_run_fails(build):
    build.behave(libev={"fail": "no such luck"})
    done = build.run("drum", "--subjects", "libev")
    assert done.returncode == 1
    assert "nothing was measured" in done.stderr
    assert build.document()["results"] == []
    assert "no such luck" in build.page()


@pytest.mark.parametrize("line, why", [
    ("what?", "no line of JSON"),
    ("", "no line of JSON"),
    ('{"iterations": []}', "no line of JSON"),
    ('{"iterations": [{"event_ns": 1}]}', "no usable round_us"),
    ('{"iterations": [{"event_ns": NaN, "round_us": 1}]}', "no usable event_ns"),
    ('{"iterations": [{"event_ns": "1", "round_us": 1}]}', "no usable event_ns"),
    ('{"iterations": [{"event_ns": -1, "round_us": 1}]}', "no usable event_ns"),
])
def test_garbage_is_no_sample(build, line, why):
    build.behave(libev={"say": line})
    build.run("drum", "--subjects", "libev,asio", "--rounds", "1")
    document = build.document()
    assert why in document["left_out"][0]["why"]
    assert {e["subject"] for e in document["results"]} == {"asio"}


def test_a_fallback_does_not_pass_for_the_backend_it_is_named_after(build):
    build.behave(tambour={"backend": "epoll"})
    build.run("drum", "--subjects", "tambour,tambour-uring,tambour-epoll", "--rounds", "1")
    document = build.document()
    assert {e["subject"] for e in document["results"]} == {"tambour", "tambour-epoll"}
    assert [(e["subject"], e["why"]) for e in document["left_out"]] == [
        ("tambour-uring", "asked for io_uring, ran on epoll")]


def test_a_hanging_child_is_killed_with_its_group(build):
    build.behave(libev={"hang": True})
    began = time.monotonic()
    done = build.run("drum", "--subjects", "libev,asio", "--rounds", "1", "--time-limit", "1",
                     "--pairs", "10,20,30", "--active", "1")
    assert done.returncode == 0
    assert time.monotonic() - began < 15
    whys = [e["why"] for e in build.document()["left_out"]]
    assert whys[:2] == ["killed at its time limit of 1 s"] * 2
    assert whys[2].startswith("left alone")  # waiting a third time would tell nothing new
    assert not alive(build.bench / "child.pid") and not alive(build.bench / "grandchild.pid")


def test_a_budget_takes_rounds_but_leaves_three(build):
    build.behave(libev={"slow": 0.3})
    build.run("drum", "--subjects", "libev", "--rounds", "50", "--budget", "1",
              "--pairs", "10,20", "--active", "1")
    counts = [len(e["samples"]) for e in build.document()["results"]]
    assert all(3 <= count < 10 for count in counts) and len(counts) == 4
    assert any(re.search(r"2 of 2 cells had fewer rounds", note)
               for note in build.document()["machine"]["notes"])


def test_progress_says_where_it_is(build):
    done = build.run("drum", "--subjects", "libev", "--rounds", "2")
    assert re.search(r"drum: 1,000 pairs, 100 active.*round 1/2, libev", done.stdout)
