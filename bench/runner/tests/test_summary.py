"""The summary on the terminal: short, sorted by suite, details on request."""

import io
import random

import pytest
from conftest import made_up
from rich.console import Console
from runner import formatting, summary
from runner.subjects import is_peer
from runner.suites import load

SUITES = load()
ROUNDS = 12


def printed(document: dict, details: bool = False, width: int = 200) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    summary.show(document, SUITES, out, details)
    return out.file.getvalue().splitlines()


def of_all_suites() -> dict:
    whole = made_up({})
    generator = random.Random(1)
    for suite in SUITES.values():
        peer = next(s.name for s in suite.subjects if is_peer(s.name))
        for metric in suite.metrics:
            values = {name: [base * generator.uniform(0.99, 1.01) for _ in range(ROUNDS)]
                      for name, base in (("tambour", 10), ("tambour-aa", 10), (peer, 20))}
            if metric is suite.metrics[0]:
                whole["results"] += made_up(values, suite.name, metric.name,
                                            **{p.name: p.default[0]
                                               for p in suite.parameters})["results"]
    return whole


def test_summary_of_all_suites_has_one_line_for_each_and_eight_more():
    document = of_all_suites()
    document["machine"]["notes"] = [f"note {n}" for n in range(20)]
    document["skipped"] = [{"suite": "drum", "subject": f"s{n}", "params": {},
                            "reason": f"reason {n}"} for n in range(30)]
    lines = printed(document)
    paths = 3  # those of the results and the report, and the announcement
    assert len(lines) + paths <= len(SUITES) + 8
    for name in SUITES:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
    assert any("48 more notes" in line for line in lines)
    assert len(printed(document, details=True)) > 60


def test_verdict_comes_with_peer_ratio_and_interval():
    document = made_up({"tambour": [10] * 8, "tambour-aa": [10] * 8, "libev": [15] * 8},
                       pairs=1)
    assert printed(document)[-2:] == [
        "Tambour against the best peer in 1 suite: beats it in 1.",
        "drum                  faster    libev 1.50 (1.50–1.50)"]


def test_rate_says_the_ratio_of_times():
    document = made_up({"tambour": [30.0] * 8, "tambour-aa": [30.0] * 8, "libuv": [10.0] * 8},
                       "throughput", "messages_per_s", connections=1, size=64)
    table = " ".join(printed(document, details=True))
    assert "ratio to Tambour (lower is better)" in table and "10.0 (3.00)" in table


def test_run_prints_details_only_if_asked(build):
    build.behave(libev={"factor": 1.5})
    words = ("drum", "--subjects", "tambour,libev", "--rounds", "6")
    plain, full = build.run(*words), build.run(*words, "--details")
    assert "ratio to Tambour" not in plain.stdout and "ratio to Tambour" in full.stdout
    assert len(plain.stdout.splitlines()) <= 30
    assert "drum                  faster    libev 1.50" in plain.stdout


def test_noisy_subject_is_undecided(build):
    build.behave(libev={"noise": 0.9})
    done = build.run("drum", "--subjects", "tambour,libev", "--rounds", "12")
    assert "1 suite: 1 undecided." in done.stdout and "the interval includes 1" in done.stdout


@pytest.mark.parametrize("seconds, text", [(0.2, "1 s"), (59, "59 s"), (60, "1 min"),
                                           (275, "4 min 35 s")])
def test_duration(seconds, text):
    assert formatting.duration(seconds) == text


def test_skipped_entries_with_the_same_reason_are_one_line():
    entries = [{"suite": suite, "subject": subject, "params": {}, "reason": "not installed"}
               for suite in ("drum", "timers") for subject in ("muduo", "evpp")]
    assert formatting.skipped_lines(entries, SUITES) == [
        "muduo and evpp, in drum and timers: not installed"]
    entries = [{"suite": "drum", "subject": "libev", "params": {"pairs": n}, "reason": "failed"}
               for n in (1, 2)]
    assert formatting.skipped_lines(entries, SUITES) == ["libev, in 2 cells of drum: failed"]
    assert formatting.skipped_lines(entries[:1], SUITES) == ["libev, in drum (1 pairs): failed"]
