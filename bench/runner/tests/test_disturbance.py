"""Counters of the kernel, and what counts as disturbed."""

import os
import subprocess

from runner.disturbance import Counters, least_disturbed, read_counters, score, steal_ticks

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
    assert score(Counters(9, 999), [Counters()] * 3) == 0.0
    assert score(Counters(9, 999), [Counters()] * 4) > 1


def test_a_few_switches_are_tolerated():
    quiet = [Counters(0, n % 3) for n in range(9)]
    assert score(Counters(0, 3), quiet) <= 1
    assert score(Counters(0, 5), quiet) > 1
    assert score(Counters(1, 0), quiet) > 1


def test_bound_follows_what_is_usual_on_this_machine():
    busy = [Counters(2, 40)] * 9
    assert score(Counters(3, 60), busy) <= 1
    assert score(Counters(2, 64), busy) > 1
    assert score(Counters(4, 40), busy) > 1


def test_calm_samples_are_usual_even_if_most_are_disturbed():
    history = [Counters(0, 1)] * 4 + [Counters(0, 60)] * 8
    assert score(Counters(0, 1), history) <= 1 < score(Counters(0, 60), history)


def test_least_disturbed_are_those_up_to_one():
    assert least_disturbed([0.5, 1.0, 1.1, 0.0, 9.0, 0.2, 0.1], 2) == [0, 1, 3, 5, 6]


def test_least_disturbed_are_at_least_half_and_the_minimum():
    assert least_disturbed([5.0, 1.1, 3.0, 2.0], 1) == [1, 3]
    assert least_disturbed([5.0, 1.1, 3.0, 2.0], 3) == [1, 2, 3]
    assert least_disturbed([5.0, 1.1], 6) == [0, 1]
    assert least_disturbed([], 6) == []
