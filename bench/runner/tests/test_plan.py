"""Cells: combined, clamped to the machine, merged; what can't be run has its reason."""

from pathlib import Path

from runner import plan
from runner.figures import SAMPLES_MIN
from runner.limits import Limits
from runner.subjects import executable
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
    assert one.notes == ["drum: asked for pairs 10,000 and 100,000, ran 9,950: "
                         "the limit of open files is 20,000"]


def test_a_clamped_cell_is_not_run_beside_its_equal(build):
    one = made(build=build.root, pairs=(9950, 10_000))
    assert [cell["pairs"] for cell in cells(one)] == [9950]


def test_passes_that_overlap_play_a_cell_once(build):
    requests = [plan.Request(SUITES["drum"], {"pairs": pairs}) for pairs in ((100,), (100, 200))]
    one = plan.make(requests, None, build.root, LIMITS)
    assert [cell["pairs"] for cell in cells(one)] == [100, 200]


def test_no_more_active_than_pairs(build):
    one = made(build=build.root, pairs=(100, 1000), active=(100, 1000))
    assert [(c["pairs"], c["active"]) for c in cells(one)] == [(100, 100), (1000, 100),
                                                              (1000, 1000)]
    assert one.notes == ["drum: skipped: 1,000 active are more than 100 pairs"]


def test_select_ends_at_1024(build):
    one = made(build=build.root, pairs=(500, 501))
    plays = [[s.name for s in task.subjects] for task in one.tasks]
    assert "tambour-select" in plays[0] and "tambour-select" not in plays[1]
    gone = [e for e in one.left_out if e["subject"] == "tambour-select"]
    assert [e["params"]["pairs"] for e in gone] == [501]
    assert "1,024" in gone[0]["why"]


def test_absent_subjects_have_a_reason(build):
    one = made(build=build.root)
    reasons = {e["subject"]: e["why"] for e in one.left_out if not e["params"]}
    assert reasons == {
        "libev-published": "not built: there is no bench/drum-libev-published in the build "
                           "directory",
        "libevent-published": "not built: there is no bench/drum-libevent-published in the build "
                              "directory",
        "tambour-libev": "not built: there is no bench/drum-tambour-libev in the build directory",
        "muduo": "no muduo here",
        "evpp": "not built: there is no bench/drum-evpp in the build directory"}


def test_only_named_subjects(build):
    one = made(build=build.root, names=["libev", "evpp"])
    assert [s.name for s in one.tasks[0].subjects] == ["libev"]
    assert [e["subject"] for e in one.left_out] == ["evpp"]


def test_the_published_libevent_plays_with_timeouts_only(build):
    name = "libevent-published"
    (build.root / "bench" / f"drum-{name}").touch()
    one = made(build=build.root, names=[name], timeouts=(False, True))
    assert [task.cell.get("timeouts") for task in one.tasks if task.subjects] == [True]
    assert [e["why"] for e in one.left_out] == ["without timeouts it is libevent"]


def test_the_protocol_is_named_only_when_it_is_not_libevs(build):
    one = made(build=build.root, protocol=("libev", "muduo"))
    assert cells(one) == [
        {"pairs": 1000, "active": 100, "writes": 10_000, "timeouts": False},
        {"pairs": 1000, "active": 100, "writes": 10_000, "timeouts": False, "protocol": "muduo"}]
    assert [task.rounds for task in one.tasks] == [6, 3]


def test_every_pass_tells_the_noise_of_what_it_times():
    for suite in SUITES.values():
        for values in (*suite.quick, *suite.full) if suite.noisy else ():
            assert values.get("rounds", suite.rounds) >= SAMPLES_MIN, suite.name


def test_every_pass_of_every_suite_can_be_planned(build):
    for name in ("quick", "full"):
        for suite in SUITES.values():
            for values in getattr(suite, name):
                values = {n: v for n, v in values.items() if n != "rounds"}
                assert set(values) <= {p.name for p in suite.parameters}
                for subject in suite.subjects:
                    executable(build.root, suite.program or suite.name, subject).touch()
                assert made(suite.name, build=build.root, **values).tasks or suite.unavailable()
