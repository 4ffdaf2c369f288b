"""Cells are combined, clamped to the machine and merged; what cannot run has a reason."""

from pathlib import Path

from runner import plan
from runner.cli import QUICK_BUDGET_S
from runner.estimates import PAIRS_MIN
from runner.limits import Limits
from runner.subjects import CONTROL, OURS, executable
from runner.suites import load

LIMITS = Limits(open_files=20_000)
SUITES = load()


def made(suite="drum", names=None, build=Path("/nowhere"), limits=LIMITS, **values):
    return plan.make([plan.Request(SUITES[suite], values)], names, build, limits)


def cells(one):
    return [task.cell.params for task in one.tasks]


def test_pairs_are_clamped_and_merged(build):
    one = made(build=build.root, pairs=(1000, 10_000, 100_000))
    assert [cell["pairs"] for cell in cells(one)] == [1000, 9950]
    assert one.notes == ["drum: pairs 10,000 and 100,000 reduced to 9,950: "
                         "the limit of open files is 20,000"]


def test_clamped_cell_is_merged_with_an_equal_one(build):
    one = made(build=build.root, pairs=(9950, 10_000))
    assert [cell["pairs"] for cell in cells(one)] == [9950]


def test_cell_in_two_passes_runs_once(build):
    requests = [plan.Request(SUITES["drum"], {"pairs": pairs}) for pairs in ((100,), (100, 200))]
    one = plan.make(requests, None, build.root, LIMITS)
    assert [cell["pairs"] for cell in cells(one)] == [100, 200]


def test_cell_with_more_active_than_pairs_is_skipped(build):
    one = made(build=build.root, pairs=(100, 1000), active=(100, 1000))
    assert [(c["pairs"], c["active"]) for c in cells(one)] == [(100, 100), (1000, 100),
                                                              (1000, 1000)]
    assert one.notes == ["drum: skipped: 1,000 active are more than 100 pairs"]


def test_select_is_limited_to_1024_descriptors(build):
    one = made(build=build.root, pairs=(500, 501))
    names = [[s.name for s in task.subjects] for task in one.tasks]
    assert "tambour-select" in names[0] and "tambour-select" not in names[1]
    gone = [e for e in one.skipped if e["subject"] == "tambour-select"]
    assert [e["params"]["pairs"] for e in gone] == [501]
    assert "1,024" in gone[0]["reason"]


def test_missing_subjects_have_a_reason(build):
    one = made(build=build.root)
    reasons = {e["subject"]: e["reason"] for e in one.skipped if not e["params"]}
    assert reasons == {
        "libev-published": "not built: there is no bench/drum-libev-published in the build "
                           "directory",
        "libev-emulation": "not built: there is no bench/drum-libev-emulation in the build "
                           "directory",
        "tambour-libev-emulation": "not built: there is no bench/drum-tambour-libev-emulation in "
                                   "the build directory",
        "libevent-published": "not built: there is no bench/drum-libevent-published in the build "
                              "directory",
        "tambour-libevent-published": "not built: there is no "
                                      "bench/drum-tambour-libevent-published in the build "
                                      "directory",
        "tambour-libev": "not built: there is no bench/drum-tambour-libev in the build directory",
        "tambour-libevent": "not built: there is no bench/drum-tambour-libevent in the build "
                            "directory",
        "muduo": "no muduo here",
        "evpp": "not built: there is no bench/drum-evpp in the build directory"}


def test_only_named_subjects_run(build):
    one = made(build=build.root, names=["libev", "evpp"])
    assert [s.name for s in one.tasks[0].subjects] == ["libev"]
    assert [e["subject"] for e in one.skipped] == ["evpp"]


def test_published_libevent_runs_with_timeouts_only(build):
    name = "libevent-published"
    (build.root / "bench" / f"drum-{name}").touch()
    one = made(build=build.root, names=[name], timeouts=(False, True))
    assert [task.cell.get("timeouts") for task in one.tasks if task.subjects] == [True]
    assert [e["reason"] for e in one.skipped] == ["identical to libevent without timeouts"]


def test_pipes_are_a_parameter_that_asio_lacks(build):
    one = made(build=build.root, names=["tambour", "asio"], pipes=(True,))
    (task,) = one.tasks
    assert task.cell.get("pipes") is True
    assert "--pipes" in task.suite.arguments(task.cell)
    assert "asio" not in [subject.name for subject in task.subjects]
    assert "socket objects" in next(e["reason"] for e in one.skipped if e["subject"] == "asio")


def test_protocol_is_a_parameter_only_if_not_the_default(build):
    one = made(build=build.root, protocol=("libev", "muduo"))
    assert cells(one) == [
        {"pairs": 1000, "active": 100, "writes": 10_000, "timeouts": False},
        {"pairs": 1000, "active": 100, "writes": 10_000, "timeouts": False, "protocol": "muduo"}]
    assert [task.rounds for task in one.tasks] == [12, 6]


def test_every_pass_has_enough_rounds_for_an_interval():
    for suite in SUITES.values():
        for values in (*suite.quick, *suite.full) if not suite.exact else ():
            assert values.get("rounds", suite.rounds) >= PAIRS_MIN, suite.name


def test_every_suite_has_an_aa_control(build):
    for suite in SUITES.values():
        program = suite.program or suite.name
        for subject in suite.subjects:
            executable(build.root, program, subject).touch()
        for task in made(suite.name, build=build.root).tasks:
            control, = (s for s in task.subjects if s.name == CONTROL)
            ours, = (s for s in task.subjects if s.name == OURS)
            assert (control.peer, control.env) == (ours.peer, ours.env)


def test_no_control_without_a_comparison(build):
    for names in (["tambour"], ["libev", "asio"]):
        task, = made(build=build.root, names=names).tasks
        assert CONTROL not in [subject.name for subject in task.subjects]


def test_quick_set_takes_at_most_five_minutes(build):
    """With the peers that Debian has packages for."""
    (build.root / "bench" / "peers.json").unlink()
    requests = [plan.Request(suite, {n: v for n, v in values.items() if n != "rounds"},
                             values.get("rounds"))
                for suite in SUITES.values() for values in suite.quick]
    for suite in SUITES.values():
        for subject in suite.subjects:
            if subject.name not in ("muduo", "evpp"):
                executable(build.root, suite.program or suite.name, subject).touch()
    made_up = plan.make(requests, None, build.root, LIMITS, quick=True)
    assert 60 < made_up.cost <= QUICK_BUDGET_S


def test_quick_set_runs_only_quick_subjects(build):
    one = plan.make([plan.Request(SUITES["drum"])], None, build.root, LIMITS, quick=True)
    assert [s.name for s in one.tasks[0].subjects] == ["tambour", "floor", "libev", "libevent",
                                                       "libuv", "asio", CONTROL]


def test_every_pass_of_every_suite_has_tasks(build):
    for name in ("quick", "full"):
        for suite in SUITES.values():
            for values in getattr(suite, name):
                values = {n: v for n, v in values.items() if n != "rounds"}
                assert set(values) <= {p.name for p in suite.parameters}
                for subject in suite.subjects:
                    executable(build.root, suite.program or suite.name, subject).touch()
                assert made(suite.name, build=build.root, **values).tasks or suite.unavailable()


def test_drop_in_for_libevent_runs_next_to_libevent(build):
    for name in ("drum", "timers", "throughput", "churn", "idle", "fanout"):
        names = [subject.name for subject in SUITES[name].subjects]
        assert {"tambour-libevent", "libevent"} <= set(names), name
