"""Suites with clients or threads on other processors, and metrics of which more is better."""

import re

import pytest
from conftest import BENCH, entry, made_up
from runner import report
from runner.figures import Figures
from runner.limits import Limits
from runner.model import Cell, NotMeasured
from runner.servers import MILLISECONDS
from runner.suites import load

WORKLOADS = ("throughput", "latency", "churn", "idle", "fanout")
SUITES = load()


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload_is_the_first_argument(name):
    suite = SUITES[name]
    cell = Cell(name, tuple((p.name, p.default[0]) for p in suite.parameters))
    words = suite.arguments(cell)
    assert suite.program == "server" and words[0] == name
    assert words[1::2] == [*(f"--{p.name}" for p in suite.parameters), "--iterations"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_charts_are_in_the_page(name, tmp_path):
    suite = SUITES[name]
    params = {p.name: p.default[0] for p in suite.parameters}
    document = made_up({"tambour": [2.0], "floor": [1.0], "asio": [3.0]}, name,
                       suite.metrics[0].name, **params)
    charts = suite.charts(Figures(suite, document))
    assert charts
    page = report.write(document, SUITES, tmp_path).read_text()
    assert page.count("<figure") == sum(map(report.worth_drawing, charts))


def test_scaling_compares_several_loops_with_one(tmp_path):
    suite = SUITES["scaling"]
    cell = Cell("scaling", (("workload", "churn"), ("loops", 2), ("milliseconds", 50)))
    words = suite.arguments(cell)
    assert words[:3] == ["churn", "--open", "32"] and words[3:5] == ["--loops", "2"]
    assert suite.values([{"server_cpu_ns": 5.0, "connections_per_s": 7.0}], cell) == {
        "server_cpu_ns": 5.0, "per_s": 7.0}
    document = made_up({"tambour": [2000.0]}, "scaling", "server_cpu_ns", workload="echo", loops=1,
                       milliseconds=50)
    two = made_up({"tambour": [2500.0]}, "scaling", "server_cpu_ns", workload="echo", loops=2,
                  milliseconds=50)
    document["results"] += two["results"]
    ((_, head, rows),) = suite.tables(Figures(suite, document))
    assert head == ["name", "1 loop", "2 loops", "efficiency"]
    assert rows[0][0] == "tambour" and rows[0][3] == "0.80"
    assert "0.80" in report.write(document, SUITES, tmp_path).read_text()


@pytest.mark.parametrize("allowed, reason", [({1}, "a second processor is needed"), ({0, 1}, None)])
def test_two_ends_need_two_allowed_processors(monkeypatch, allowed, reason):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert {SUITES[name].unavailable() for name in (*WORKLOADS, "post")} == {reason}


def number_in(source: str, pattern: str) -> int:
    found = re.search(pattern, (BENCH / source).read_text())
    assert found, f"{source} has no {pattern}"
    return int(found.group(1).replace("'", ""))


def test_longest_measurement_is_shorter_than_the_time_limits():
    """Those of the runner and of the programs' watchdog."""
    watchdog_s = number_in("common/program.cpp", r"watchdog_s = (\d+)")
    limits = [number_in(path, r'"--milliseconds".*, ([\d\']+)}') for path in
              (BENCH / "server").rglob("*.h") if "--milliseconds" in path.read_text()]
    assert limits == [MILLISECONDS.high]
    for name in WORKLOADS:
        suite = SUITES[name]
        most = {p.name: p.high if p.name == "milliseconds" else p.default[0]
                for p in suite.parameters}
        longest = suite.cost(Cell(name, tuple(most.items())))
        assert longest < 0.9 * min(watchdog_s, suite.time_limit), name


def test_connections_are_clamped_to_the_open_files():
    limits = Limits(1000)
    assert SUITES["fanout"].adjust({"connections": 5000}, limits) == {"connections": 900}
    assert SUITES["churn"].adjust({"open": 32}, limits) == {"open": 32}
    assert SUITES["idle"].adjust({"connections": 5000, "active": 10}, limits)["connections"] == 900
    with pytest.raises(NotMeasured, match="1,000 active are more than 900"):
        SUITES["idle"].adjust({"connections": 5000, "active": 1000}, limits)


def test_ioevent_is_the_drum_with_one_lap_an_iteration(build):
    done = build.run("ioevent", "--pairs", "500", "--rounds", "1", "--subjects", "libev")
    assert done.returncode == 0, done.stderr
    words = build.spawned()[0]["words"]
    assert words[words.index("--writes") + 1] == "500" and words[-1] == "25"
    mean = sum(1000.0 + 10 * i for i in range(1, 25)) / 24
    assert entry(build.document(), "libev", "event_ns")["samples"] == [mean]


@pytest.mark.parametrize("pattern, says", [("stream", "producers"), ("ring", "loops in the ring")])
def test_post_has_charts_over_the_producers(pattern, says):
    document = made_up({"tambour": [2.0]}, "post", "post_ns", producers=1, tasks=9, pattern=pattern)
    charts = SUITES["post"].charts(Figures(SUITES["post"], document))
    assert {chart.x_label for chart in charts} == {says} and len(charts) == 2


@pytest.mark.parametrize("direct, words", [(False, "From the page cache"), (True, "Direct")])
def test_files_charts_name_what_is_read(direct, words):
    suite = SUITES["files"]
    params = {"mebibytes": 1, "depth": 1, "reads": 9, "direct": direct}
    assert ("--direct" in suite.arguments(Cell("files", tuple(params.items())))) == direct
    charts = suite.charts(Figures(suite, made_up({"floor": [2.0]}, "files", "read_ns", **params)))
    assert all(chart.title.startswith(words) for chart in charts) and len(charts) == 2
