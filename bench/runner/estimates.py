"""The statistics of the report: an interval for a median, and the verdict drawn from it.

All functions are pure. The reasons for the method are in docs/decisions/0017-paired-rounds.md.
"""

import math
import statistics
from dataclasses import dataclass
from enum import StrEnum

CONFIDENCE = 0.95
# Differences up to this are of no practical importance: "equal".
EQUAL_MARGIN = 0.03


class Verdict(StrEnum):
    """What a comparison of Tambour with a peer shows."""

    FASTER = "faster"
    EQUAL = "equal"
    SLOWER = "slower"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Estimate:
    """The median of `pairs` ratios and its confidence interval, None if there are too few pairs."""

    ratio: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def deviation(self) -> float:
        """How far the median is from 1, in either direction: 0.05 for 1.05 and for 1/1.05."""
        return max(self.ratio, 1 / self.ratio) - 1


def interval_rank(count: int, confidence: float = CONFIDENCE) -> int | None:
    """The rank r for which the r-th lowest and r-th highest of `count` values enclose the median.

    Each value is below the median with probability 1/2, so the number of values below it is
    binomial, and the r-th lowest value exceeds the median with probability P(X < r). Returns the
    greatest r whose two tails together do not exceed 1 - confidence; None if not even the extremes
    of so few values reach the confidence.
    """
    rank, tail = 0, 0.0
    while True:
        tail += math.comb(count, rank) / 2**count
        if 2 * tail > 1 - confidence:
            return rank or None
        rank += 1


# The fewest pairs that have an interval: 6 for 95 %.
PAIRS_MIN = next(n for n in range(1, 100) if interval_rank(n) is not None)


def estimate(ratios: list[float], exact: bool = False) -> Estimate | None:
    """The median with its interval; None without ratios.

    `exact` is for counts, which repeat: the interval encloses all ratios, of which one suffices.
    """
    if not ratios:
        return None
    ordered = sorted(ratios)
    rank = 1 if exact else interval_rank(len(ratios))
    low, high = (ordered[rank - 1], ordered[-rank]) if rank else (None, None)
    return Estimate(statistics.median(ordered), low, high, len(ordered))


def geometric_means(series: list[list[float]]) -> list[float]:
    """The n-th result is the geometric mean of the n-th values; ends with the shortest series."""
    return [math.exp(statistics.fmean(map(math.log, values))) for values in zip(*series)]


def verdict(peer: Estimate | None, control: Estimate | None) -> Verdict:
    """The verdict on a peer's ratio to Tambour, given that of the A/A control.

    What is claimed is the bound of the interval nearer to 1: "faster by at least this much". The
    claim must exceed the deviation of the control, which compares a program with itself.
    """
    if peer is None or peer.low is None or control is None or control.low is None:
        return Verdict.UNDECIDED
    margin = 1 + EQUAL_MARGIN
    if peer.low >= 1 / margin and peer.high <= margin and control.deviation <= EQUAL_MARGIN:
        return Verdict.EQUAL
    if peer.low > 1 + control.deviation:
        return Verdict.FASTER
    if peer.high < 1 / (1 + control.deviation):
        return Verdict.SLOWER
    return Verdict.UNDECIDED


def why_undecided(peer: Estimate | None, control: Estimate | None) -> str:
    """The reason for Verdict.UNDECIDED."""
    if peer is None or control is None:
        return "not measured"
    if peer.low is None or control.low is None:
        return f"fewer than {PAIRS_MIN} rounds"
    if peer.low <= 1 <= peer.high:
        return "the interval includes 1"
    return f"not clear of the A/A control, which differs by {control.deviation:.1%}"
