"""The JSON document of a run: its members, its values, nothing that identifies the machine."""

import json
import platform
import statistics

from conftest import entry

KEYS = {"suite", "subject", "version", "backend", "params", "metric", "unit", "samples", "rounds",
        "disturbance", "min", "median"}


def test_schema(build):
    done = build.run("drum", "timers", "--rounds", "3", "--subjects", "tambour,libev,muduo")
    assert done.returncode == 0, done.stderr
    document = build.document()
    assert list(document) == ["schema", "machine", "command", "results", "skipped"]
    assert document["schema"] == 2
    assert document["command"] == \
        "bench/run drum timers --rounds 3 --subjects tambour,libev,muduo"
    for each in document["results"]:
        assert set(each) == KEYS
        assert len(each["samples"]) == 3 and each["rounds"] == [0, 1, 2]
        assert each["disturbance"] == [0.0] * 3  # three samples do not show what is usual
        assert each["min"] == min(each["samples"])
        assert each["median"] == statistics.median(each["samples"])
    assert entry(document, "tambour", "event_ns")["params"] == {
        "pairs": 1000, "active": 100, "writes": 10_000, "timeouts": False}
    assert {(e["metric"], e["unit"]) for e in document["results"]} == {
        ("event_ns", "ns"), ("round_us", "µs"), ("arm_ns", "ns"), ("reset_ns", "ns"),
        ("cancel_ns", "ns"), ("expire_ns", "ns"), ("reset_whole_ns", "ns"),
        ("cancel_whole_ns", "ns"), ("request_ns", "ns")}
    assert [(set(e), e["suite"], e["subject"]) for e in document["skipped"]] == [
        ({"suite", "subject", "params", "reason"}, suite, "muduo") for suite in ("drum", "timers")]


def test_machine_is_described_but_not_identified(build):
    build.behave(asio={"fail": f"{build.root}/bench/drum-asio: out of luck"})
    build.run("drum", "--rounds", "1", "--subjects", "libev,asio")
    assert build.document()["skipped"][0]["reason"] == (
        "exit 1: warning: of no interest; BUILD/bench/drum-asio: out of luck")
    machine = build.document()["machine"]
    for name in ("kernel", "cpu", "cores", "memory_mib", "virtualised", "open_files_limit",
                 "samples", "samples_repeated", "samples_dropped"):
        assert name in machine
    text = json.dumps(build.document()) + build.page()
    assert str(build.root) not in text
    if len(platform.node()) > 3:
        assert platform.node() not in json.dumps(machine)


def test_libev_protocol_takes_the_second_iteration(build):
    build.run("drum", "--rounds", "2", "--subjects", "libev")
    assert entry(build.document(), "libev", "event_ns")["samples"] == [1010.0, 1010.0]


def test_muduo_protocol_drops_the_first_of_25_iterations(build):
    build.run("drum", "--rounds", "1", "--subjects", "libev", "--protocol", "muduo")
    mean = statistics.fmean(1000.0 + 10 * i for i in range(1, 25))
    document = build.document()
    assert entry(document, "libev", "event_ns", protocol="muduo")["samples"] == [mean]
    assert build.spawned()[0]["words"][-2:] == ["--iterations", "25"]


def test_json_option_names_the_file(build, tmp_path):
    path = tmp_path / "deep" / "figures.json"
    build.run("drum", "--rounds", "1", "--subjects", "libev", "--json", str(path))
    assert json.loads(path.read_text())["schema"] == 2
    assert not (build.root / "bench-report" / "results.json").exists()


def test_compiler_is_read_from_the_build_directory(build):
    (build.root / "CMakeCache.txt").write_text(
        "CMAKE_BUILD_TYPE:STRING=Release\nCMAKE_CXX_FLAGS_RELEASE:STRING=-O2 -DNDEBUG\n")
    where = build.root / "CMakeFiles" / "3.25.1"
    where.mkdir(parents=True)
    (where / "CMakeCXXCompiler.cmake").write_text(
        'set(CMAKE_CXX_COMPILER "/usr/bin/c++")\nset(CMAKE_CXX_COMPILER_ID "GNU")\n'
        'set(CMAKE_CXX_COMPILER_VERSION "12.2.0")\n')
    build.run("drum", "--rounds", "1", "--subjects", "libev")
    machine = build.document()["machine"]
    assert (machine["compiler"], machine["build_type"], machine["cxx_flags"]) == (
        "GNU 12.2.0", "Release", "-O2 -DNDEBUG")
