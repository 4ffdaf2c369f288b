"""Detects samples that were disturbed by something else on the machine.

Two counters of the kernel are used: processor time that the hypervisor gave to others (steal time,
/proc/stat) and involuntary context switches of the program (getrusage(2)). Both are compared with
what is usual for this subject and cell on this machine, which is its lower quartile. On a machine
that is always busy in the same way, nothing is unusual; on one that is busy now and then, the calm
samples are kept, but never less than half of them (see calmest()).
"""

import resource
import statistics
from dataclasses import dataclass
from pathlib import Path

# A few switches are normal: kernel threads, the timer tick. Steal time is counted in whole ticks.
SWITCHES_TOLERATED = 3
STEAL_TICKS_TOLERATED = 0.5
# Relative to what is usual.
EXCESS_TOLERATED = 0.5
# With fewer samples of a subject in a cell, what is usual is not known.
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
    """How disturbed a sample was; above 1 it was unusual among all of its subject and cell."""
    if len(history) < HISTORY_MIN:
        return 0.0
    return max(counters.switches / _limit([h.switches for h in history], SWITCHES_TOLERATED),
               counters.steal_ticks / _limit([h.steal_ticks for h in history],
                                             STEAL_TICKS_TOLERATED))


def _limit(values: list[int], tolerated: float) -> float:
    return statistics.quantiles(values, n=4)[0] * (1 + EXCESS_TOLERATED) + tolerated


def calmest(scores: list[float], least: int) -> list[int]:
    """The positions of the scores up to 1, but at least half of all and at least `least`."""
    needed = max(least, (len(scores) + 1) // 2)
    ranked = sorted(range(len(scores)), key=scores.__getitem__)
    calm = sum(each <= 1 for each in scores)
    return sorted(ranked[:max(needed, calm)])
