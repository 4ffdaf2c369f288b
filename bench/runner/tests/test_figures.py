"""The results of a suite: ratios of paired rounds, the best peer, verdicts."""

import pytest
from conftest import made_up
from runner.estimates import Verdict
from runner.figures import Figures, comparisons, headline, headlines, overall
from runner.model import Metric
from runner.suites import load

SUITES = load()
DRUM = SUITES["drum"]
CELL = {"pairs": 100, "active": 10}
EVENT = DRUM.metrics[0]
ROUNDS = 10


def figures(values: dict, **params) -> Figures:
    return Figures(DRUM, made_up(values, **(params or CELL)))


def steady(**values) -> dict:
    """The same sample in each round; the control is like Tambour."""
    values.setdefault("tambour_aa", values["tambour"])
    return {name.replace("_", "-"): [value] * ROUNDS for name, value in values.items()}


def test_ratios_are_of_samples_of_the_same_round():
    one = figures({"tambour": [10, 20, 40], "libev": [20, 20, 20]})
    assert one.ratios(CELL, "libev", EVENT) == [2.0, 1.0, 0.5]


def test_rounds_without_both_subjects_do_not_count():
    document = made_up({"tambour": [10, 20, 40], "libev": [20, 20, 20]}, **CELL)
    for each in document["results"]:
        if each["subject"] == "libev":
            each["samples"], each["rounds"] = each["samples"][1:], [0, 2]
    assert Figures(DRUM, document).ratios(CELL, "libev", EVENT) == [2.0, 0.5]


def disturb(document: dict, subject: str, rounds: list[int]) -> Figures:
    for each in document["results"]:
        if each["subject"] == subject:
            each["disturbance"] = [2.0 if n in rounds else 0.5 for n in each["rounds"]]
    return Figures(DRUM, document)


def test_disturbed_rounds_do_not_count():
    document = made_up({"tambour": [10] * 10, "libev": [20] * 7 + [90] * 3}, **CELL)
    one = disturb(document, "libev", [8, 9])
    assert one.ratios(CELL, "libev", EVENT) == [2.0] * 7 + [9.0]
    one = disturb(document, "tambour", [7])
    assert one.ratios(CELL, "libev", EVENT) == [2.0] * 7


def test_at_least_half_of_the_rounds_count():
    document = made_up({"tambour": [10] * 20, "libev": [20] * 20}, **CELL)
    assert len(disturb(document, "libev", list(range(19))).ratios(CELL, "libev", EVENT)) == 10


def test_at_least_enough_rounds_for_an_interval_count():
    document = made_up({"tambour": [10] * 8, "libev": [20] * 8}, **CELL)
    assert len(disturb(document, "libev", [0, 1, 2, 3]).ratios(CELL, "libev", EVENT)) == 6


def test_ratio_of_a_rate_is_inverted():
    rate = Metric("messages_per_s", "1/s", "", "more")
    assert rate.ratio(50, 100) == 2.0 and EVENT.ratio(50, 100) == 0.5
    assert rate.ratio(0, 100) is None and EVENT.ratio(1, 0) is None


def test_best_of_a_rate_is_the_highest():
    assert Metric("bytes_per_s", "B/s", "", "more").best([1, 3, 2]) == 3


def test_best_peer_is_neither_a_reference_nor_tambour():
    one = figures(steady(tambour=10, floor=1, epoll=2, tambour_epoll=3, libev=30, asio=20))
    assert one.best(CELL, EVENT) == "asio"


@pytest.mark.parametrize("theirs, expected", [
    (20, Verdict.FASTER), (5, Verdict.SLOWER), (10.1, Verdict.EQUAL)])
def test_verdict_of_a_cell(theirs, expected):
    assert figures(steady(tambour=10, libev=theirs)).verdict(CELL, "libev", EVENT) == expected


def test_verdict_is_undecided_if_the_control_differs_by_more():
    one = figures(steady(tambour=10, libev=11, tambour_aa=12))
    assert one.verdict(CELL, "libev", EVENT) == Verdict.UNDECIDED
    assert headline(one).verdict == Verdict.UNDECIDED
    assert "A/A control, which differs by 20.0%" in headline(one).reason


def test_verdict_is_undecided_without_a_control():
    values = steady(tambour=10, libev=20)
    del values["tambour-aa"]
    assert figures(values).verdict(CELL, "libev", EVENT) == Verdict.UNDECIDED


def test_verdict_is_undecided_with_few_rounds():
    one = figures({name: [10] * 5 for name in ("tambour", "tambour-aa")} | {"libev": [20] * 5})
    assert one.verdict(CELL, "libev", EVENT) == Verdict.UNDECIDED
    assert headline(one).reason == "fewer than 6 rounds"


def test_control_is_not_a_subject_of_the_report():
    assert figures(steady(tambour=10, libev=20)).subjects == ["tambour", "libev"]


def two_cells(first: dict, second: dict) -> Figures:
    document = made_up(first, pairs=100)
    document["results"] += made_up(second, pairs=200)["results"]
    return Figures(DRUM, document)


def test_suite_is_the_geometric_mean_of_its_cells():
    one = two_cells(steady(tambour=10, libev=20), steady(tambour=10, libev=45))
    estimate, count = overall(one, "libev")
    assert estimate.ratio == pytest.approx(3.0) and count == 2
    found = headline(one)
    assert found.peer == "libev" and found.verdict == Verdict.FASTER
    assert found.cells == {Verdict.FASTER: 2} and len(comparisons(one)) == 2


def test_best_peer_of_a_suite_ran_in_all_cells():
    one = two_cells(steady(tambour=10, libev=20, asio=5), steady(tambour=10, libev=20))
    assert headline(one).peer == "libev"


def test_cells_of_a_headline_are_against_the_best_peer_of_each():
    one = two_cells(steady(tambour=10, libev=20, asio=5), steady(tambour=10, libev=20, asio=90))
    assert headline(one).cells == {Verdict.SLOWER: 1, Verdict.FASTER: 1}


def test_decisive_metrics_of_a_suite():
    assert [m.name for m in SUITES["timers"].decisive_metrics] == [
        "arm_ns", "expire_ns", "reset_whole_ns", "cancel_whole_ns", "request_ns"]
    for suite in SUITES.values():
        assert suite.decisive_metrics and len(suite.decisive_metrics) == len(suite.decisive or "1")


def test_counts_need_one_round_only():
    suite = SUITES["instructions"]
    document = made_up({"tambour": [100], "tambour-aa": [100], "libev": [200], "asio": [101]},
                       "instructions", "instructions_per_event", pairs=1)
    one = Figures(suite, document)
    metric = suite.metrics[0]
    assert one.verdict({"pairs": 1}, "libev", metric) == Verdict.FASTER
    assert one.verdict({"pairs": 1}, "asio", metric) == Verdict.EQUAL
    document["results"] = [e for e in document["results"] if e["subject"] != "asio"]
    assert headline(Figures(suite, document)).phrase == "fewer"


def test_no_headline_without_tambour_or_peers():
    assert headline(figures({"libev": [1] * ROUNDS})) is None
    assert headline(figures({"tambour": [1] * ROUNDS, "floor": [1] * ROUNDS})) is None
    assert headlines(made_up({"libev": [1]}), SUITES) == []


def test_zero_values_have_no_ratio():
    assert headline(figures(steady(tambour=0.0, libev=1.0))) is None
    assert figures(steady(tambour=1.0, libev=0.0)).estimate(CELL, "libev", EVENT) is None
