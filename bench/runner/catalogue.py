"""`bench/run --list`: suites, parameters, subjects and whether they can be run here."""

from rich.markup import escape

from .limits import Limits
from .model import Parameter
from .subjects import why_absent


def parameters(suites: dict) -> list[Parameter]:
    """The parameters of all suites, each name once."""
    return list({p.name: p for suite in suites.values() for p in suite.parameters}.values())


def show(suites: dict, build, limits: Limits, console) -> None:
    """Print the list."""
    for suite in suites.values():
        console.print(f"[bold]{suite.name}[/]: {suite.what}")
        for p in suite.parameters:
            console.print(f"  [cyan]--{p.name:<12}[/]{p.help}\n{'':16}default "
                          f"{p.show(p.default)}; quick {_values(suite.quick, p)}; "
                          f"full {_values(suite.full, p)}", soft_wrap=True)
        units = ", ".join(f"{m.name} ({m.unit})" for m in suite.metrics)
        console.print(f"  metrics: {units}; rounds: {suite.rounds}; subjects:", soft_wrap=True)
        reason = suite.unavailable()
        for subject in suite.subjects:
            why = reason or why_absent(build, suite.program or suite.name, subject)
            state = "[green]ready[/]" if why is None else f"[yellow]left out[/]: {escape(why)}"
            console.print(f"  {subject.name:<20}{state}", soft_wrap=True)
        console.print()
    console.print(f"limit of open files: {limits.open_files:,} (at most {limits.pairs_max:,} "
                  "pairs)")


def _values(passes: tuple[dict, ...], parameter: Parameter) -> str:
    """The values in all passes of quick or full."""
    found = dict.fromkeys(v for each in passes for v in each.get(parameter.name, parameter.default))
    return parameter.show(found)
