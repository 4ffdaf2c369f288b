"""An invalid command reports what is wrong, exits with 2, and runs nothing."""

import json

import pytest
from runner import cli
from runner.model import Parameter


@pytest.mark.parametrize("words, said", [
    ((), "name a suite"),
    (("dream",), "unknown suite dream"),
    (("drum", "--subjects", "libev,libfoo"), "unknown subject 'libfoo'"),
    (("drum", "--subjects", ""), "unknown subject ''"),
    (("drum", "--pairs", "ten"), "--pairs takes whole numbers, not 'ten'"),
    (("drum", "--pairs", "-1"), "--pairs"),
    (("drum", "--pairs", "0"), "--pairs 0 is not between 1 and"),
    (("drum", "--pairs", "100,,200"), "--pairs takes whole numbers, not ''"),
    (("drum", "--pairs", "١٢"), "--pairs takes whole numbers"),
    (("drum", "--timeouts", "maybe"), "--timeouts takes yes, no or no,yes"),
    (("drum", "--protocol", "libuv"), "--protocol takes libev, muduo"),
    (("timers", "--pairs", "100"), "--pairs is not a parameter of timers"),
    (("drum", "--colour", "red"), "unrecognized arguments: --colour red"),
    (("drum", "--pair", "100"), "unrecognized arguments: --pair 100"),
    (("drum", "--rounds", "0"), "'0' is not a whole number above 0"),
    (("drum", "--cpu", "4096"), "--cpu 4096: this process may use"),
    (("quick", "drum"), "quick and full cannot be combined"),
    (("drum", "--gate", "nowhere.json"), "--gate requires the suite instructions"),
    (("instructions", "--gate", "nowhere.json"), "--gate nowhere.json: No such file"),
    (("instructions", "--tolerance", "1"), "--tolerance requires --gate"),
    (("instructions", "--record", "no/where.json"), "there is no such directory"),
    (("report",), "report takes one FILE"),
    (("drum", "--json", "/proc/figures.json"), "cannot write /proc/figures.json: No such file"),
    (("drum", "--json", "/proc/no/figures.json"), "cannot write /proc/no/figures.json: No such"),
    (("drum", "--json", "/proc"), "cannot write /proc: Is a directory"),
    (("drum", "--json", "/dev/null/figures.json"), "cannot write /dev/null/figures.json: Not a"),
    (("drum", "--out", "/proc"), "cannot write /proc/results.json: No such file"),
    (("drum", "--out", "/dev/null"), "cannot write /dev/null/results.json: Not a directory"),
    (("instructions", "--record", "/"), "cannot write /: Is a directory"),
    (("instructions", "--record", "/proc/x.json"), "cannot write /proc/x.json: No such file"),
])
def test_invalid_command(build, words, said, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main([*words, "--build", str(build.root)])
    assert exit_.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert build.spawned() == []
    assert not (build.root / "bench-report").exists()


@pytest.mark.parametrize("name", ["index.html", "results.json"])
def test_directory_instead_of_an_output_file(build, tmp_path, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    done = build.run("drum", "--out", str(tmp_path / "out"))
    assert done.returncode == 2 and f"{name}: Is a directory" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and build.spawned() == []
    assert [each.name for each in (tmp_path / "out").iterdir()] == [name]


VALID = {"suite": "drum", "subject": "libev", "version": "1", "backend": "", "params": {},
         "metric": "event_ns", "unit": "ns", "samples": [1.0], "rounds": [0],
         "disturbance": [0.0], "min": 1.0, "median": 1.0}


@pytest.mark.parametrize("change", [
    {"schema": 1}, {"results": None}, {"skipped": {}}, {"machine": []}, {"command": None},
    {"results": [{}]}, {"results": [1]}, {"results": [{**VALID, "samples": []}]},
    {"results": [{**VALID, "params": None}]}, {"results": [{**VALID, "median": "1"}]},
    {"results": [{**VALID, "rounds": []}]}, {"skipped": [{"suite": "drum"}]}, None])
def test_report_rejects_a_file_that_is_not_a_document(build, tmp_path, change):
    path = tmp_path / "figures.json"
    whole = {"schema": 2, "machine": {}, "command": "", "results": [], "skipped": []}
    path.write_text("{" if change is None else json.dumps({**whole, **change}))
    done = build.run("report", str(path))
    assert done.returncode == 2, done.stderr
    assert done.stderr == "bench/run: figures.json is not a document of schema 2\n"


def test_report_rejects_an_incomplete_document(build, tmp_path):
    (tmp_path / "figures.json").write_text('{"schema": 2}')
    done = build.run("report", str(tmp_path / "figures.json"))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_no_build_directory(build):
    build.root = build.root / "nowhere"
    done = build.run("drum")
    assert done.returncode == 2
    assert "make build" in done.stderr


def test_list_shows_suites_and_subjects_and_runs_nothing(build):
    done = build.run("--list")
    assert done.returncode == 0
    for word in ("drum", "timers", "instructions", "--pairs", "tambour-uring", "event_ns",
                 "no muduo here", "there is no bench/drum-evpp"):
        assert word in done.stdout
    assert build.spawned() == []


def test_comma_separated_lists():
    flag = Parameter("timeouts", "", (False,), flag=True)
    assert flag.parse("no,yes") == (False, True)
    assert flag.parse("yes") == (True,)
    assert Parameter("pairs", "", (1,)).parse("10, 20,10") == (10, 20)
    assert flag.show((False, True)) == "no,yes"


def test_flag_without_a_value_means_yes(build):
    assert build.run("drum", "--rounds", "1", "--subjects", "libev", "--timeouts").returncode == 0
    assert [e["params"]["timeouts"] for e in build.document()["results"]] == [True, True]
    assert "--timeouts" in build.spawned()[0]["words"]


def test_repeatable_command_has_no_output_options():
    words = ["drum", "--details", "--json", "/home/me/x.json", "--out=/tmp/o", "--pairs", "1,2",
             "--build", "b"]
    assert cli.repeatable(words) == "bench/run drum --pairs 1,2"
