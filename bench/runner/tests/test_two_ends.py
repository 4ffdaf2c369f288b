"""The suites with two ends, and metrics of which more is better."""

import io
import re

import pytest
from conftest import BENCH, entry, made_up
from rich.console import Console
from runner import report, summary, tables
from runner.figures import Figures
from runner.limits import Limits
from runner.model import Cell, Left
from runner.servers import MILLISECONDS
from runner.suites import load

GAMES = ("throughput", "latency", "churn", "idle", "fanout")
SUITES = load()


@pytest.mark.parametrize("name", GAMES)
def test_the_game_is_the_first_argument(name):
    suite = SUITES[name]
    cell = Cell(name, tuple((p.name, p.default[0]) for p in suite.parameters))
    words = suite.arguments(cell)
    assert suite.program == "server" and words[0] == name
    assert words[1::2] == [*(f"--{p.name}" for p in suite.parameters), "--iterations"]


@pytest.mark.parametrize("name", GAMES)
def test_charts_show_what_was_measured(name, tmp_path):
    suite = SUITES[name]
    params = {p.name: p.default[0] for p in suite.parameters}
    document = made_up({"tambour": [2.0], "floor": [1.0], "asio": [3.0]}, name,
                       suite.metrics[0].name, **params)
    charts = suite.charts(Figures(suite, document))
    assert charts
    page = report.write(document, SUITES, tmp_path).read_text()
    assert page.count("<figure") == sum(map(report.worth_drawing, charts))


@pytest.mark.parametrize("allowed, why", [({1}, "a second processor is needed"), ({0, 1}, None)])
def test_two_ends_need_two_processors_that_are_allowed(monkeypatch, allowed, why):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert {SUITES[name].unavailable() for name in (*GAMES, "post")} == {why}


def number_in(source: str, pattern: str) -> int:
    found = re.search(pattern, (BENCH / source).read_text())
    assert found, f"{source} has no {pattern}"
    return int(found.group(1).replace("'", ""))


def test_no_measurement_is_as_long_as_the_watchdogs_patience():
    """One that a parameter allows must not be taken for one that hangs."""
    patience = number_in("common/program.cpp", r"watchdog_s = (\d+)")
    limit = number_in("server/workloads/workload.h", r'"--milliseconds".*, ([\d\']+)}')
    assert limit == MILLISECONDS.high
    for name in GAMES:
        suite = SUITES[name]
        most = {p.name: p.high if p.name == "milliseconds" else p.default[0]
                for p in suite.parameters}
        longest = suite.cost(Cell(name, tuple(most.items())))
        assert longest < 0.9 * min(patience, suite.time_limit), name


def test_connections_are_clamped_to_the_open_files():
    limits = Limits(1000)
    assert SUITES["fanout"].adjust({"connections": 5000}, limits) == {"connections": 900}
    assert SUITES["churn"].adjust({"open": 32}, limits) == {"open": 32}
    assert SUITES["idle"].adjust({"connections": 5000, "active": 10}, limits)["connections"] == 900
    with pytest.raises(Left, match="1,000 active are more than 900"):
        SUITES["idle"].adjust({"connections": 5000, "active": 1000}, limits)


def shown(suite: str, metric: str, rounds: int = 3) -> str:
    document = made_up({"tambour": [30.0] * rounds, "libuv": [10.0] * rounds}, suite,
                       metric, connections=1, size=64, milliseconds=10, timers=1)
    out = Console(file=io.StringIO(), width=200)
    summary.show(document, {suite: SUITES[suite]}, out)
    return " ".join(re.sub("[┃│]", " ", out.file.getvalue()).split())


def test_the_summary_says_which_way_is_better():
    text = shown("throughput", "messages_per_s")
    assert "messages per second (more is better)" in text
    assert "message (less is better)" in text and "takes less" not in text
    assert "below 1: Tambour takes less" in shown("timers", "arm_ns")


def test_the_summary_says_when_nobody_knows_the_noise():
    assert "fewer than three samples" in shown("timers", "arm_ns", 2)
    assert "fewer than three samples" not in shown("timers", "arm_ns", 3)
    assert "samples" not in shown("instructions", "instructions_per_event", 1)


def test_the_tables_show_the_best_sample():
    document = made_up({"tambour": [30.0, 50.0, 10.0]}, "throughput", "messages_per_s",
                       connections=1)
    text = tables.render(Figures(SUITES["throughput"], document))
    assert "more is better" in text and "<th>max</th>" in text and "<th>min</th>" in text
    assert '<td class="start best">30.0</td><td class="best">50.0</td>' in text


def test_ioevent_is_the_drum_with_a_lap_a_round(build):
    done = build.run("ioevent", "--pairs", "500", "--rounds", "1", "--subjects", "libev")
    assert done.returncode == 0, done.stderr
    words = build.spawned()[0]["words"]
    assert words[words.index("--writes") + 1] == "500" and words[-1] == "25"
    mean = sum(1000.0 + 10 * i for i in range(1, 25)) / 24
    assert entry(build.document(), "libev", "event_ns")["samples"] == [mean]


@pytest.mark.parametrize("pattern, says", [("stream", "producers"), ("ring", "loops in the ring")])
def test_post_draws_a_line_over_the_producers(pattern, says):
    document = made_up({"tambour": [2.0]}, "post", "post_ns", producers=1, tasks=9, pattern=pattern)
    charts = SUITES["post"].charts(Figures(SUITES["post"], document))
    assert {chart.x_label for chart in charts} == {says} and len(charts) == 2


@pytest.mark.parametrize("direct, words", [(False, "In the page cache"), (True, "Past the page")])
def test_files_says_what_is_read(direct, words):
    suite = SUITES["files"]
    params = {"mebibytes": 1, "depth": 1, "reads": 9, "direct": direct}
    assert ("--direct" in suite.arguments(Cell("files", tuple(params.items())))) == direct
    charts = suite.charts(Figures(suite, made_up({"floor": [2.0]}, "files", "read_ns", **params)))
    assert all(chart.title.startswith(words) for chart in charts) and len(charts) == 2
