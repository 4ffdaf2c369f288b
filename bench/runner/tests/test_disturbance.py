"""Counters of the kernel, and what counts as disturbed."""

import os
import subprocess

from runner.disturbance import Counters, is_disturbed, read_counters, steal_ticks

STAT = """cpu  100 0 50 900 5 0 3 77 0 0
cpu0 60 0 20 400 5 0 3 70 0 0
cpu1 40 0 30 500 0 0 0 7 0 0
cpu10 1 0 0 1 0 0 0 1000 0 0
intr 12345 0 0
"""


def test_steal_time_of_the_chosen_processors():
    assert steal_ticks(STAT, [1]) == 7
    assert steal_ticks(STAT, [0, 1]) == 77
    assert steal_ticks(STAT, [5]) == 0
    assert steal_ticks("cpu0 1 2 3\n", [0]) == 0  # a kernel without steal time


def test_switches_of_children_are_counted():
    cpus = sorted(os.sched_getaffinity(0))
    before = read_counters(cpus)
    subprocess.run(["true"], check=True)
    difference = read_counters(cpus) - before
    assert difference.switches >= 0 and difference.steal_ticks >= 0


def test_nothing_is_disturbed_without_a_history():
    assert not is_disturbed(Counters(9, 999), [Counters()] * 2)
    assert is_disturbed(Counters(9, 999), [Counters()] * 3)


def test_a_few_switches_are_tolerated():
    quiet = [Counters(0, n % 3) for n in range(9)]
    assert not is_disturbed(Counters(0, 4), quiet)
    assert is_disturbed(Counters(0, 5), quiet)
    assert is_disturbed(Counters(1, 0), quiet)


def test_bound_follows_what_is_usual_on_this_machine():
    busy = [Counters(2, 40)] * 9
    assert not is_disturbed(Counters(3, 60), busy)
    assert is_disturbed(Counters(2, 64), busy)
    assert is_disturbed(Counters(4, 40), busy)


def test_at_most_half_of_any_samples_are_disturbed():
    for history in ([Counters(n, n * n) for n in range(30)],
                    [Counters(n % 2, 100 * (n % 2)) for n in range(31)]):
        assert 2 * sum(is_disturbed(each, history) for each in history) <= len(history)
