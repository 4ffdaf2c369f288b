"""Ratios, noise, and who is ahead."""

import pytest
from conftest import made_up
from runner import words
from runner.figures import Figures, geometric_mean, headlines, noise_notes
from runner.model import Metric
from runner.suites import load

DRUM = load()["drum"]
CELL = {"pairs": 100, "active": 10}


def figures(values):
    return Figures(DRUM, made_up(values, **CELL))


def test_ratio_is_of_medians():
    one = figures({"tambour": [10, 20, 90], "libev": [40, 5, 50]})
    assert one.ratio(CELL, "tambour", "libev", "event_ns") == 0.5
    assert one.ratio(CELL, "tambour", "asio", "event_ns") is None


def test_geometric_mean_is_even_handed():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)


def test_floor_is_not_a_competitor():
    one = figures({"floor": [1], "tambour": [2], "libev": [3]})
    assert one.best(CELL, DRUM.metrics[0]) == 2


def test_best_of_more_is_the_greatest():
    assert Metric("bytes_per_s", "B/s", "", "more").best([1, 3, 2]) == 3


def test_noise_is_the_median_over_the_minimum():
    one = figures({"tambour": [100, 110, 150], "libev": [100, 110, 150]})
    assert one.noise(CELL, "event_ns") == pytest.approx(0.10)
    assert figures({"tambour": [100, 110]}).noise(CELL, "event_ns") is None  # too few rounds


def test_what_disturbs_a_rate_makes_it_less():
    suite = load()["throughput"]
    samples = {"tambour": [50, 90, 100], "libuv": [50, 90, 100]}
    one = Figures(suite, made_up(samples, "throughput", "messages_per_s", connections=1))
    assert one.noise({"connections": 1}, "messages_per_s") == pytest.approx(100 / 90 - 1)


@pytest.mark.parametrize("theirs, verdict", [(200, "gain"), (50, "loss"), (101, "even")])
def test_verdict(theirs, verdict):
    one = figures({"tambour": [100, 102, 103], "libev": [theirs, theirs * 1.02, theirs * 1.03]})
    line = next(line for line in headlines(one) if line.metric.name == "event_ns")
    assert line.verdict("libev") == verdict
    assert line.ratios["libev"][0] == pytest.approx(100 / theirs)


def test_a_subject_that_wavers_is_ahead_of_nobody():
    one = figures({"tambour": [100, 140, 150], "libev": [180, 181, 182],
                   "asio": [100, 101, 102], "libuv": [200, 201, 202]})
    assert one.noise(CELL, "event_ns") < 0.02
    line = next(line for line in headlines(one) if line.metric.name == "event_ns")
    assert line.verdict("libev") == "even"  # 23 % less, but its own spread is 40 %


@pytest.mark.parametrize("ours, theirs, unknown", [
    ([100, 100], [200, 200, 200], ["libev"]), ([100, 100, 100], [200, 200], ["libev"]),
    ([100, 100, 100], [200, 200, 200], []), ([0, 100, 100], [200, 200, 200], ["libev"])])
def test_what_nobody_knows_the_noise_of_decides_nothing(ours, theirs, unknown):
    line = headlines(figures({"tambour": ours, "libev": theirs, "floor": [10]}))[0]
    assert line.verdict("libev") == ("even" if unknown else "gain")
    assert line.unknown == unknown


def test_one_cell_of_unknown_noise_is_enough():
    document = made_up({"tambour": [100] * 3, "libev": [200] * 3}, pairs=100)
    document["results"] += made_up({"tambour": [100], "libev": [200]}, pairs=200)["results"]
    assert headlines(Figures(DRUM, document))[0].verdict("libev") == "even"


def test_a_cell_without_the_other_says_nothing_of_their_noise():
    document = made_up({"tambour": [100] * 3, "libev": [200] * 3}, pairs=100)
    document["results"] += made_up({"tambour": [100]}, pairs=200)["results"]
    assert headlines(Figures(DRUM, document))[0].verdict("libev") == "gain"


def test_counts_have_no_noise():
    suite = load()["instructions"]
    one = Figures(suite, made_up({"tambour": [100], "libev": [200]}, "instructions",
                                 "instructions_per_event", pairs=1))
    assert headlines(one)[0].verdict("libev") == "gain"


def test_the_floor_is_no_loss():
    line = headlines(figures({"tambour": [100], "floor": [10]}))[0]
    assert line.verdict("floor") == "even"


def test_without_tambour_there_is_no_headline():
    assert headlines(figures({"libev": [1]})) == []


def test_a_noisy_machine_is_told():
    quiet = made_up({"libev": [100, 101, 102]}, **CELL)
    noisy = made_up({"libev": [100, 130, 140]}, **CELL)
    assert noise_notes([DRUM], quiet) == []
    assert "noisy" in noise_notes([DRUM], noisy)[0] and "30%" in noise_notes([DRUM], noisy)[0]


def test_titles_within_a_sentence_keep_the_capitals_of_names():
    titles = ("Timers", "I/O events", "AnyEvent's servers")
    assert [words.within_a_sentence(title) for title in titles] == \
        ["timers", "I/O events", "AnyEvent's servers"]
