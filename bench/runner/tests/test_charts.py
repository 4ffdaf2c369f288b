"""Charts of different cells differ by file name, by title, and in the page."""

import itertools
import re

import pytest
from conftest import made_up
from runner import report
from runner.charts import Bars
from runner.figures import Figures
from runner.suites import load

SUITES = load()


def of_two_values_each(suite) -> dict:
    """A document in which every parameter of a suite has two values."""
    values = [(False, True) if p.flag else p.choices[:2] or (10, 20) for p in suite.parameters]
    whole = made_up({}, suite.name)
    for each in itertools.product(*values):
        params = {p.name: value for p, value in zip(suite.parameters, each)
                  if not (p.silent and value == p.default[0])}
        whole["results"] += made_up({"tambour": [2.0], "floor": [1.0]}, suite.name,
                                    suite.metrics[0].name, **params)["results"]
    return whole


def charts_of(suite) -> list:
    return suite.charts(Figures(suite, of_two_values_each(suite)))


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_charts_have_unique_names_and_titles(suite):
    charts = charts_of(suite)
    names = [chart.name for chart in charts]
    titles = [(chart.title, chart.section) for chart in charts]
    assert len(names) == len(set(names)) and len(titles) == len(set(titles))
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_a_line_has_one_point_for_each_x(suite):
    for chart in charts_of(suite):
        if isinstance(chart, Bars):
            positions = chart.labels
        else:
            positions = [cell[chart.x] for cell in chart.cells]
        assert len(positions) == len(set(positions)) == len(chart.cells)


def test_ids_in_the_page_are_unique(tmp_path):
    whole = made_up({})
    for name in ("files", "sleep", "throughput"):
        whole["results"] += of_two_values_each(SUITES[name])["results"]
    ids = re.findall(r'\bid="([^"]*)"', report.write(whole, SUITES, tmp_path).read_text())
    assert len(ids) == len(set(ids)) > 100


def test_constant_parameters_are_not_in_names():
    document = made_up({"tambour": [2.0]}, "throughput", connections=1, size=64, milliseconds=10)
    charts = SUITES["throughput"].charts(Figures(SUITES["throughput"], document))
    assert [chart.name for chart in charts] == ["throughput-cpu", "throughput-bytes"]
