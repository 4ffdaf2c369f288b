"""A wrong command says what is wrong, exits with 2, and runs nothing."""

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
    (("drum", "--timeouts", "maybe"), "--timeouts takes yes, no or both"),
    (("drum", "--protocol", "libuv"), "--protocol takes libev, muduo"),
    (("timers", "--pairs", "100"), "--pairs is no parameter of timers"),
    (("drum", "--colour", "red"), "unrecognized arguments: --colour red"),
    (("drum", "--pair", "100"), "unrecognized arguments: --pair 100"),
    (("drum", "--rounds", "0"), "'0' is not a whole number above 0"),
    (("drum", "--cpu", "4096"), "--cpu 4096: this process may use"),
    (("quick", "drum"), "quick and full stand alone"),
    (("drum", "--gate", "nowhere.json"), "--gate belongs to the suite instructions"),
    (("instructions", "--gate", "nowhere.json"), "--gate nowhere.json: No such file"),
    (("instructions", "--tolerance", "1"), "--tolerance belongs to --gate"),
    (("instructions", "--record", "no/where.json"), "there is no such directory"),
    (("report",), "report takes one FILE"),
])
def test_wrong_command(build, words, said, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main([*words, "--build", str(build.root)])
    assert exit_.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert build.spawned() == []
    assert not (build.root / "bench-report").exists()


def test_no_build_directory(build):
    build.root = build.root / "nowhere"
    done = build.run("drum")
    assert done.returncode == 2
    assert "make build" in done.stderr


def test_list_runs_nothing_and_names_all(build):
    done = build.run("--list")
    assert done.returncode == 0
    for word in ("drum", "timers", "instructions", "--pairs", "tambour-uring", "event_ns",
                 "no muduo here", "there is no bench/drum-evpp"):
        assert word in done.stdout
    assert build.spawned() == []


def test_comma_lists():
    flag = Parameter("timeouts", "", (False,), flag=True)
    assert flag.parse("no,yes") == (False, True)
    assert flag.parse("yes") == (True,)
    assert Parameter("pairs", "", (1,)).parse("10, 20,10") == (10, 20)
    assert flag.show((False, True)) == "no,yes"


def test_a_flag_alone_means_yes(build):
    assert build.run("drum", "--rounds", "1", "--subjects", "libev", "--timeouts").returncode == 0
    assert [e["params"]["timeouts"] for e in build.document()["results"]] == [True, True]
    assert "--timeouts" in build.spawned()[0]["words"]


def test_repeatable_command_names_no_places():
    words = ["drum", "--json", "/home/me/x.json", "--out=/tmp/o", "--pairs", "1,2", "--build", "b"]
    assert cli.repeatable(words) == "bench/run drum --pairs 1,2"
