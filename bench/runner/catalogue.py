"""`bench/run --list`: suites, parameters, and subjects with their availability."""

from rich.markup import escape

from .limits import Limits
from .model import Parameter
from .subjects import why_absent


def parameters(suites: dict) -> list[Parameter]:
    """The parameters of all suites, each name once."""
    return list({p.name: p for suite in suites.values() for p in suite.parameters}.values())


def show(suites: dict, build, limits: Limits, console) -> None:
    """Prints the list."""
    for suite in suites.values():
        console.print(f"[bold]{suite.name}[/]: {suite.what}", soft_wrap=True)
        for p in suite.parameters:
            console.print(f"  [cyan]--{p.name:<12}[/]{p.help}\n{'':16}default "
                          f"{p.show(p.default)}; quick {_values(suite.quick, p)}; "
                          f"full {_values(suite.full, p)}", soft_wrap=True)
        units = ", ".join(f"{m.name} ({m.unit})" for m in suite.metrics)
        console.print(f"  metrics: {units}; rounds: {suite.rounds}; subjects:", soft_wrap=True)
        reason = suite.unavailable()
        for subject in suite.subjects:
            absent = reason or why_absent(build, suite.program or suite.name, subject)
            state = "[green]available[/]" if absent is None \
                else f"[yellow]skipped[/]: {escape(absent)}"
            quick = "" if subject.name in suite.quick_subjects and suite.quick else ", full only"
            console.print(f"  {subject.name:<20}{state}{quick}", soft_wrap=True)
        console.print()
    console.print(f"limit of open files: {limits.open_files:,} (at most {limits.pairs_max:,} "
                  "pairs)")


def _values(passes: tuple[dict, ...], parameter: Parameter) -> str:
    """The values in all passes of quick or full."""
    found = dict.fromkeys(v for each in passes for v in each.get(parameter.name, parameter.default))
    return parameter.show(found) or "none"
