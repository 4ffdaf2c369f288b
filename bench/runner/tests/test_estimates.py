"""Intervals, ratios and verdicts against known answers and simulated noise."""

import random
import statistics

import pytest
from runner.estimates import (EQUAL_MARGIN, PAIRS_MIN, Estimate, Verdict, estimate,
                              geometric_means, interval_rank, verdict, why_undecided)


@pytest.mark.parametrize("count, rank", [
    (5, None), (6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (25, 8), (30, 10), (100, 40)])
def test_rank_of_the_interval(count, rank):
    """The values of printed tables of the 95 % interval of a median."""
    assert interval_rank(count) == rank


def test_fewest_pairs_with_an_interval():
    assert PAIRS_MIN == 6


def test_estimate_of_known_values():
    ratios = [n / 10 for n in range(1, 21)]
    assert estimate(ratios) == Estimate(statistics.median(ratios), 0.6, 1.5, 20)
    assert estimate(ratios[:5]) == Estimate(0.3, None, None, 5)
    assert estimate([]) is None


def test_counts_need_one_pair_only():
    assert estimate([1.5], exact=True) == Estimate(1.5, 1.5, 1.5, 1)


def test_deviation_is_the_same_in_both_directions():
    assert Estimate(1.25, 1, 2, 9).deviation == pytest.approx(0.25)
    assert Estimate(0.8, 1, 2, 9).deviation == pytest.approx(0.25)


def test_geometric_means():
    means = geometric_means([[2.0, 8.0, 5.0], [0.5, 2.0]])
    assert means == pytest.approx([1.0, 4.0])


@pytest.mark.parametrize("low, high, control, expected", [
    (1.05, 1.20, 1.01, Verdict.FASTER), (0.80, 0.95, 1.01, Verdict.SLOWER),
    (0.98, 1.02, 1.01, Verdict.EQUAL), (1.005, 1.02, 1.00, Verdict.EQUAL),
    (0.90, 1.10, 1.00, Verdict.UNDECIDED), (0.98, 1.05, 1.00, Verdict.UNDECIDED),
    # The A/A control differs by more than what is claimed.
    (1.05, 1.20, 1.06, Verdict.UNDECIDED), (1.05, 1.20, 1 / 1.06, Verdict.UNDECIDED),
    (0.80, 0.95, 1.06, Verdict.UNDECIDED), (0.98, 1.02, 1.04, Verdict.UNDECIDED),
    (1.30, 1.40, 1.06, Verdict.FASTER), (0.50, 0.70, 1 / 1.06, Verdict.SLOWER)])
def test_verdict(low, high, control, expected):
    peer = Estimate((low * high) ** 0.5, low, high, 20)
    assert verdict(peer, Estimate(control, 0.5, 2, 20)) == expected


def test_verdict_needs_intervals_of_both():
    wide, narrow = Estimate(2.0, None, None, 5), Estimate(2.0, 1.9, 2.1, 20)
    control = Estimate(1.0, 0.99, 1.01, 20)
    assert verdict(narrow, control) == Verdict.FASTER
    for pair in ((wide, control), (narrow, Estimate(1.0, None, None, 5)), (None, control),
                 (narrow, None)):
        assert verdict(*pair) == Verdict.UNDECIDED


def test_reason_for_undecided():
    control = Estimate(1.08, 0.99, 1.1, 20)
    assert "includes 1" in why_undecided(Estimate(1.0, 0.9, 1.1, 20), control)
    near = Estimate(1.1, 1.05, 1.2, 20)
    assert "A/A control, which differs by 8.0%" in why_undecided(near, control)
    assert "fewer than 6" in why_undecided(Estimate(1.1, None, None, 3), control)
    assert why_undecided(None, control) == "not measured"


class Machine:
    """Simulates paired rounds: a drift that both share, and noise that each has for itself."""

    def __init__(self, seed: int, noise: float) -> None:
        self._random = random.Random(seed)
        self._noise = noise

    def estimate(self, factor: float, rounds: int = 20) -> Estimate:
        """The ratio of a program that takes `factor` times as long as the other."""
        ratios = []
        for at in range(rounds):
            drift = 1 + at / rounds  # the machine becomes half as fast during the run
            ours, theirs = (base * drift * self._sample() for base in (1.0, factor))
            ratios.append(theirs / ours)
        return estimate(ratios)

    def _sample(self) -> float:
        """Noise with occasional outliers, which only make a sample slower."""
        spike = 2.0 if self._random.random() < 0.1 else 0.0
        return 1 + self._noise * self._random.random() + spike * self._random.random()


@pytest.mark.parametrize("factor, expected", [(1.10, Verdict.FASTER), (1 / 1.10, Verdict.SLOWER),
                                              (1.0, Verdict.EQUAL)])
def test_small_differences_are_found_despite_drift_and_outliers(factor, expected):
    verdicts = []
    for seed in range(100):
        machine = Machine(seed, noise=0.03)
        verdicts.append(verdict(machine.estimate(factor), machine.estimate(1.0)))
    assert verdicts.count(expected) >= 95


def test_noisy_machine_yields_undecided_not_nonsense():
    """The same program under both names, on a machine with 40 % noise."""
    verdicts = []
    for seed in range(300):
        machine = Machine(seed, noise=0.4)
        verdicts.append(verdict(machine.estimate(1.0), machine.estimate(1.0)))
    assert verdicts.count(Verdict.UNDECIDED) >= 0.9 * len(verdicts)
    wrong = verdicts.count(Verdict.FASTER) + verdicts.count(Verdict.SLOWER)
    assert wrong <= 0.05 * len(verdicts)


def test_interval_contains_the_true_ratio_as_often_as_it_claims():
    inside = sum(each.low <= 1.0 <= each.high for each in
                 (Machine(seed, noise=0.2).estimate(1.0) for seed in range(500)))
    assert inside >= 0.93 * 500


def test_equal_margin_is_that_of_the_documentation():
    assert EQUAL_MARGIN == 0.03
