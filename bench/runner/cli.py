"""The command: arguments, and the run from plan to report.

Exit status: 0 when something was measured, 1 when nothing was or a gate is shut, 2 for a wrong
command (and then nothing was run), 130 after Ctrl-C, with what was measured until then kept.
"""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from . import catalogue, figures, limits, machine, plan, progress, report, results, summary
from .child import Launcher
from .session import Session
from .suites import load

REPOSITORY = Path(__file__).resolve().parents[2]
PASSES = ("quick", "full")
# What changes where things lie, not what is measured: left out of the command that repeats a run.
_PLACES = ("--json", "--out", "--build", "--record", "--gate", "--tolerance")


class _Parser(argparse.ArgumentParser):
    """Errors in one line; the usage of all suites is a screenful that hides them."""

    def error(self, message):
        self.exit(2, f"bench/run: {message}\n")


def _parser(suites: dict) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bench/run", allow_abbrev=False,
        usage="bench/run SUITE... [--subjects a,b,...] [--NAME VALUE ...] [--rounds N] ...",
        description="Play benchmark suites on Tambour and its peers, interleaved round by "
                    "round.",
        epilog="`bench/run --list` shows the suites, their parameters and subjects.")
    parser.add_argument("suites", nargs="*", metavar="SUITE",
                        help="suites, or quick (a small set of all) or full (everything), or "
                             "report FILE (make the page again from a run's JSON)")
    parser.add_argument("--list", action="store_true", help="show what there is and stop")
    parser.add_argument("--subjects", metavar="a,b", help="only these subjects")
    parser.add_argument("--rounds", type=_positive, metavar="N", help="rounds of each cell")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default: OUT/results.json")
    parser.add_argument("--cpu", type=int, metavar="N", help="default: the last one allowed")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: BUILD/bench-report")
    parser.add_argument("--build", type=Path, metavar="DIR",
                        help="default: $TAMBOUR_BUILD, or build/ of this repository")
    parser.add_argument("--time-limit", type=_positive, metavar="S",
                        help="seconds for one child; default: the suite's")
    parser.add_argument("--budget", type=_positive, metavar="S",
                        help="fewer rounds, but three, where needed to end in about so many "
                             "seconds")
    group = parser.add_argument_group("parameters of suites, as comma lists")
    for parameter in catalogue.parameters(suites):
        group.add_argument(f"--{parameter.name}", metavar="VALUES", help=parameter.help,
                           **({"nargs": "?", "const": "yes"} if parameter.flag else {}))
    group = parser.add_argument_group("gates")
    for suite in suites.values():
        suite.add_options(group)
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit status."""
    suites = load()
    parser = _parser(suites)
    options = parser.parse_intermixed_args(argv)
    console = Console(highlight=False)
    try:
        build = _build(options)
        if options.list:
            catalogue.show(suites, build, limits.here(), console)
            return 0
        if options.suites[:1] == ["report"]:
            return _report_again(options, suites, console)
        requests = _requests(options, suites)
        names = _subjects(options, requests)
        cpus = limits.allowed_cpus()
        cpu = cpus[-1] if options.cpu is None else options.cpu
        if cpu not in cpus:
            raise ValueError(f"--cpu {cpu}: this process may use {', '.join(map(str, cpus))}")
        if not build.is_dir():
            raise ValueError("there is no build directory; run `make build`, or name one with "
                             "--build DIR or TAMBOUR_BUILD")
        out = options.out or build / "bench-report"
        for path in (options.json or out / "results.json", out / "index.html"):
            results.check_writable(path)
        made = plan.make(requests, names, build, limits.here())
    except BrokenPipeError:  # the reader of --list has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        parser.error(str(error))
    command = repeatable(argv)
    chosen = list(dict.fromkeys(request.suite for request in requests))
    return _run(options, suites, chosen, made, build, out, cpus, cpu, command, console)


def _run(options, suites, chosen, made, build, out, cpus, cpu, command, console) -> int:
    """From plan to report."""
    began = time.monotonic()
    facts = machine.describe(build, REPOSITORY, limits.here(), cpus, cpu)
    noise = machine.Noise()
    gathered = results.Results()
    gathered.left_out += made.left_out
    launcher = Launcher(build, cpus, cpu)
    launcher.stand_aside()
    shown = progress.make(console, sum(task.cost for task in made.tasks))
    launcher.tick = shown.tick
    session = Session(launcher, gathered, shown, options.budget, options.time_limit)
    stopped_by = 0
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        with shown:
            session.run(made)
    except _Stopped as stop:
        stopped_by = stop.signal
    except KeyboardInterrupt:
        stopped_by = signal.SIGINT
    os.sched_setaffinity(0, cpus)
    notes = made.notes + session.notes
    if stopped_by:
        notes.insert(0, f"stopped early, {shown.fraction:.0%} done: what is here was measured "
                        "until then")
    facts.update(noise.facts(), seconds=round(time.monotonic() - began, 1))
    document = gathered.document(facts, command)
    facts["notes"] = notes + figures.noise_notes(list(suites.values()), document)
    return _finish(options, suites, chosen, document, out, stopped_by, console)


def _finish(options, suites, chosen, document, out, stopped_by, console) -> int:
    """Write what there is, say where it lies; the exit status."""
    json_path = options.json or out / "results.json"
    results.write(document, json_path)  # first: a chart that fails must not cost a measurement
    if options.out is None:
        report.clear(out)  # the runner's own directory: no chart of another run stays beside ours
    page = report.write(document, suites, out)
    summary.show(document, suites, console)
    console.print(f"figures: {json_path}\nreport:  {page}", soft_wrap=True)
    if stopped_by:
        console.print("stopped early; figures and report hold what was measured until then")
        return 128 + stopped_by
    if not document["results"]:
        print("bench/run: nothing was measured", file=sys.stderr)
        return 1
    # Each that was asked for: one of which nothing could be played has no entry in the document.
    return max(suite.conclude(document, options, console) for suite in chosen)


class _Stopped(KeyboardInterrupt):
    """SIGTERM, taken as Ctrl-C is: write what there is."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = number


def _as_interrupt(number, _frame):
    raise _Stopped(number)


def _build(options) -> Path:
    given = options.build or os.environ.get("TAMBOUR_BUILD") or REPOSITORY / "build"
    return Path(given).resolve()


def _requests(options, suites: dict) -> list[plan.Request]:
    """What was asked, checked; ValueError says what is wrong."""
    asked = list(dict.fromkeys(options.suites))
    if not asked:
        raise ValueError(f"name a suite ({', '.join(suites)}), quick or full; see --list")
    unknown = [name for name in asked if name not in suites and name not in PASSES]
    if unknown:
        raise ValueError(f"unknown suite {unknown[0]}; there are {', '.join(suites)}, and "
                         f"{' and '.join(PASSES)}")
    if len(asked) > 1 and any(name in PASSES for name in asked):
        raise ValueError("quick and full stand alone: they hold all suites")
    chosen = list(suites.values()) if asked[0] in PASSES else [suites[name] for name in asked]
    given = _given(options, suites, chosen)
    for suite in suites.values():
        suite.check_options(options, suite in chosen)
    requests = []
    for suite in chosen:
        passes = getattr(suite, asked[0]) if asked[0] in PASSES else ({},)
        for values in passes:
            values = dict(values)
            rounds = options.rounds or values.pop("rounds", None)
            mine = {p.name: p.parse(given[p.name]) for p in suite.parameters if p.name in given}
            requests.append(plan.Request(suite, {**values, **mine}, rounds))
    return requests


def _given(options, suites: dict, chosen: list) -> dict[str, str]:
    """The named parameters; ValueError for one that none of the chosen suites has."""
    given = {}
    for parameter in catalogue.parameters(suites):
        text = getattr(options, parameter.name.replace("-", "_"))
        if text is None:
            continue
        if not any(parameter.name == p.name for suite in chosen for p in suite.parameters):
            raise ValueError(f"--{parameter.name} is no parameter of "
                             f"{', '.join(suite.name for suite in chosen)}")
        given[parameter.name] = text
    return given


def _subjects(options, requests) -> list[str] | None:
    if options.subjects is None:
        return None
    known = dict.fromkeys(subject.name for request in requests for subject in
                          request.suite.subjects)
    names = [word.strip() for word in options.subjects.split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"unknown subject '{name}'; there are {', '.join(known)}")
    return names


def repeatable(argv: list[str]) -> str:
    """The command without the options that only say where things lie."""
    kept, skip = [], False
    for word in argv:
        if skip:
            skip = False
        elif word in _PLACES:
            skip = True
        elif not word.startswith(tuple(f"{place}=" for place in _PLACES)):
            kept.append(word)
    return shlex.join(["bench/run", *kept])


def _report_again(options, suites, console) -> int:
    if len(options.suites) != 2:
        raise ValueError("report takes one FILE that a run wrote")
    path = Path(options.suites[1])
    document = results.read(path)
    page = report.write(document, suites, options.out or path.resolve().parent)
    summary.show(document, suites, console)
    console.print(f"report:  {page}", soft_wrap=True)
    return 0
