"""The command bench/run: its arguments, and a run from the plan to the report.

Exit status: 0 if something was measured, 1 if nothing was or a gate failed, 2 for an invalid
command (nothing was run), 130 or 143 after Ctrl-C or SIGTERM, with the results until then written.
"""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from . import catalogue, formatting, limits, machine, plan, progress, report, results, summary
from .child import Launcher
from .session import Session
from .suites import load

REPOSITORY = Path(__file__).resolve().parents[2]
SETS = ("quick", "full")
QUICK_BUDGET_S = 300
# They change where results go or how they are shown, not what is measured: left out of the command
# that repeats a run.
_OUTPUT_OPTIONS = ("--json", "--out", "--build", "--record", "--gate", "--tolerance")


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line: the usage of all suites would fill the screen."""

    def error(self, message):
        self.exit(2, f"bench/run: {message}\n")


def _parser(suites: dict) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bench/run", allow_abbrev=False,
        usage="bench/run SUITE... [--subjects a,b,...] [--NAME VALUES ...] [--rounds N] ...",
        description="Runs benchmark suites on Tambour and its peers in interleaved rounds, and "
                    "writes a report.",
        epilog="`bench/run --list` shows the suites, their parameters and subjects.")
    parser.add_argument("suites", nargs="*", metavar="SUITE",
                        help="suites; or quick (few cells of most suites, at most about 5 "
                             "minutes) or full (everything); or report FILE (write the report "
                             "again from a run's JSON)")
    parser.add_argument("--list", action="store_true", help="list suites and subjects, then exit")
    parser.add_argument("--details", action="store_true",
                        help="print every cell and note, not only the summary")
    parser.add_argument("--subjects", metavar="a,b", help="only these subjects")
    parser.add_argument("--rounds", type=_positive, metavar="N", help="rounds of each cell")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default: OUT/results.json")
    parser.add_argument("--cpu", type=int, metavar="N",
                        help="the processor to measure on; default: the last one allowed")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: BUILD/bench-report")
    parser.add_argument("--build", type=Path, metavar="DIR",
                        help="default: $TAMBOUR_BUILD, or build/ of this repository")
    parser.add_argument("--time-limit", type=_positive, metavar="S",
                        help="seconds for one run of a subject; default: the suite's")
    parser.add_argument("--budget", type=_positive, metavar="S",
                        help="start no further rounds after S seconds, except the first six of "
                             f"each cell; default for quick: {QUICK_BUDGET_S}")
    group = parser.add_argument_group("parameters of suites, as comma-separated lists")
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
    """Runs the command; returns the exit status."""
    suites = load()
    parser = _parser(suites)
    options = parser.parse_intermixed_args(argv)
    console = Console(highlight=False)
    try:
        build = _build(options)
        if options.list:
            catalogue.show(suites, build, limits.of_this_machine(), console)
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
        quick = options.suites[:1] == ["quick"]
        made = plan.make(requests, names, build, limits.of_this_machine(), quick)
    except BrokenPipeError:  # the reader of --list has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if quick and options.budget is None:
        options.budget = QUICK_BUDGET_S
    command = repeatable(argv)
    chosen = list(dict.fromkeys(request.suite for request in requests))
    return _run(options, suites, chosen, made, build, out, cpus, cpu, command, console)


def _run(options, suites, chosen, made, build, out, cpus, cpu, command, console) -> int:
    """Runs the plan and writes the report."""
    began = time.monotonic()
    facts = machine.describe(build, REPOSITORY, limits.of_this_machine(), cpus, cpu)
    load_meter = machine.LoadMeter()
    gathered = results.Results()
    gathered.skipped += made.skipped
    launcher = Launcher(build, cpus, cpu)
    launcher.leave_measured_cpu()
    console.print(announcement(made, options.budget), highlight=False, soft_wrap=True)
    shown = progress.make(console, made.cost)
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
        notes.insert(0, f"stopped early at {shown.fraction:.0%}: the report holds the results "
                        "until then")
    facts.update(load_meter.facts(), seconds=round(time.monotonic() - began, 1), notes=notes)
    document = gathered.document(facts, command)
    return _finish(options, suites, chosen, document, out, stopped_by, console)


def announcement(made: plan.Plan, budget: int | None) -> str:
    """What a run will do and how long it is expected to take on an idle machine."""
    suites = len({task.suite.name for task in made.tasks})
    rounds = sorted({task.rounds for task in made.tasks}) or [0]
    spread = formatting.count(rounds[0], "round") if len(rounds) == 1 \
        else f"{rounds[0]} to {rounds[-1]} rounds"
    cost = made.cost if budget is None else min(made.cost, budget)
    limit = f" (at most about {formatting.duration(budget)})" if budget else ""
    return (f"{formatting.count(suites, 'suite')}, {formatting.count(len(made.tasks), 'cell')}, "
            f"{spread} of each: about {formatting.duration(cost)}{limit}")


def _finish(options, suites, chosen, document, out, stopped_by, console) -> int:
    """Writes the results and prints where they are; returns the exit status."""
    json_path = options.json or out / "results.json"
    results.write(document, json_path)  # first: a failure of the report must not lose results
    if options.out is None:
        report.clear(out)  # the default directory belongs to the runner: remove earlier charts
    page = report.write(document, suites, out)
    summary.show(document, suites, console, options.details)
    console.print(f"results: {json_path}\nreport:  {page}", soft_wrap=True)
    if stopped_by:
        console.print("stopped early; results and report hold what was measured until then")
        return 128 + stopped_by
    if not document["results"]:
        print("bench/run: nothing was measured", file=sys.stderr)
        return 1
    # All suites that were asked for: one without any result has no entry in the document.
    return max(suite.conclude(document, options, console) for suite in chosen)


class _Stopped(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: results until then are written."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = number


def _as_interrupt(number, _frame):
    raise _Stopped(number)


def _build(options) -> Path:
    given = options.build or os.environ.get("TAMBOUR_BUILD") or REPOSITORY / "build"
    return Path(given).resolve()


def _requests(options, suites: dict) -> list[plan.Request]:
    """The validated requests; ValueError says what is wrong."""
    asked = list(dict.fromkeys(options.suites))
    if not asked:
        raise ValueError(f"name a suite ({', '.join(suites)}), quick or full; see --list")
    unknown = [name for name in asked if name not in suites and name not in SETS]
    if unknown:
        raise ValueError(f"unknown suite {unknown[0]}; there are {', '.join(suites)}, and "
                         f"{' and '.join(SETS)}")
    if len(asked) > 1 and any(name in SETS for name in asked):
        raise ValueError("quick and full cannot be combined with suites")
    in_set = asked[0] if asked[0] in SETS else None
    chosen = [suite for suite in suites.values() if getattr(suite, in_set)] if in_set \
        else [suites[name] for name in asked]
    given = _given(options, suites, chosen)
    for suite in suites.values():
        suite.check_options(options, suite in chosen)
    requests = []
    for suite in chosen:
        for values in getattr(suite, in_set) if in_set else ({},):
            values = dict(values)
            rounds = options.rounds or values.pop("rounds", None)
            mine = {p.name: p.parse(given[p.name]) for p in suite.parameters if p.name in given}
            requests.append(plan.Request(suite, {**values, **mine}, rounds))
    return requests


def _given(options, suites: dict, chosen: list) -> dict[str, str]:
    """The parameters in the command; ValueError for one that no chosen suite has."""
    given = {}
    for parameter in catalogue.parameters(suites):
        text = getattr(options, parameter.name.replace("-", "_"))
        if text is None:
            continue
        if not any(parameter.name == p.name for suite in chosen for p in suite.parameters):
            raise ValueError(f"--{parameter.name} is not a parameter of "
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
    """The command without the options that only concern output."""
    kept, skip = [], False
    for word in argv:
        if skip:
            skip = False
        elif word in _OUTPUT_OPTIONS:
            skip = True
        elif word != "--details" and not word.startswith(
                tuple(f"{option}=" for option in _OUTPUT_OPTIONS)):
            kept.append(word)
    return shlex.join(["bench/run", *kept])


def _report_again(options, suites, console) -> int:
    if len(options.suites) != 2:
        raise ValueError("report takes one FILE that a run wrote")
    path = Path(options.suites[1])
    document = results.read(path)
    page = report.write(document, suites, options.out or path.resolve().parent)
    summary.show(document, suites, console, options.details)
    console.print(f"report:  {page}", soft_wrap=True)
    return 0
