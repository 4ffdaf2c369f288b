"""Detects samples that were disturbed by other programs on the machine.

Two counters of the kernel are used: processor time that the hypervisor gave to other guests (steal
time, /proc/stat) and involuntary context switches of the program (getrusage(2)). Each is compared
with its lower quartile for the same subject and cell. If the machine is always equally busy, all
samples are kept. If it is busy at times, the undisturbed samples are kept, but never fewer than
half of all (see least_disturbed()).
"""

import resource
import statistics
from dataclasses import dataclass
from pathlib import Path

# A few switches are normal: kernel threads, the timer tick. Steal time is counted in whole ticks.
SWITCHES_TOLERATED = 3
STEAL_TICKS_TOLERATED = 0.5
# Relative to the lower quartile.
EXCESS_TOLERATED = 0.5
# With fewer samples of a subject in a cell, the quartile is not meaningful.
HISTORY_MIN = 4


@dataclass(frozen=True)
class Counters:
    """Steal time in clock ticks and involuntary context switches, of one sample or in total."""

    steal_ticks: int = 0
    switches: int = 0

    def __sub__(self, other: "Counters") -> "Counters":
        return Counters(self.steal_ticks - other.steal_ticks, self.switches - other.switches)


def read_counters(cpus: list[int]) -> Counters:
    """The totals until now: steal time of these processors, switches of all waited-for children."""
    switches = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw
    return Counters(steal_ticks(Path("/proc/stat").read_text(), cpus), switches)


def steal_ticks(stat: str, cpus: list[int]) -> int:
    """The steal time of these processors in the text of /proc/stat, in clock ticks."""
    names = {f"cpu{cpu}" for cpu in cpus}
    fields = [line.split() for line in stat.splitlines()]
    return sum(int(each[8]) for each in fields if each and each[0] in names and len(each) > 8)


def score(counters: Counters, history: list[Counters]) -> float:
    """How disturbed a sample was. Above 1: more than usual for its subject and cell."""
    if len(history) < HISTORY_MIN:
        return 0.0
    return max(counters.switches / _limit([h.switches for h in history], SWITCHES_TOLERATED),
               counters.steal_ticks / _limit([h.steal_ticks for h in history],
                                             STEAL_TICKS_TOLERATED))


def _limit(values: list[int], tolerated: float) -> float:
    return statistics.quantiles(values, n=4)[0] * (1 + EXCESS_TOLERATED) + tolerated


def least_disturbed(scores: list[float], least: int) -> list[int]:
    """The positions of the scores up to 1, but at least half of all and at least `least`."""
    needed = max(least, (len(scores) + 1) // 2)
    ranked = sorted(range(len(scores)), key=scores.__getitem__)
    undisturbed = sum(each <= 1 for each in scores)
    return sorted(ranked[:max(needed, undisturbed)])
