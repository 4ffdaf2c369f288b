"""The terminal output at the end of a run: at most 30 lines, more on request."""

from rich.table import Table
from rich.text import Text

from . import formatting, tables
from .estimates import Verdict
from .figures import Figures, Headline, headlines
from .page import verdict_sentence
from .subjects import OURS
from .suite import Suite

# With a line for each suite, and those for the verdict and the paths, at most 30 lines in all.
NOTES_MAX = 3
_COLOURS = {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.EQUAL: "blue",
            Verdict.UNDECIDED: "yellow"}


def show(document: dict, suites: dict[str, Suite], console, details: bool = False) -> None:
    """The verdict of each suite, then notes and what was skipped; with `details`, every cell."""
    found = headlines(document, suites)
    if details:
        for suite in suites.values():
            _cells(Figures(suite, document), console)
    lines = [f"note: {note}" for note in document["machine"].get("notes", [])]
    lines += [f"skipped: {line}" for line in formatting.skipped_lines(document["skipped"], suites)]
    if len(lines) > NOTES_MAX and not details:
        more = len(lines) - NOTES_MAX + 1
        lines = [*lines[:NOTES_MAX - 1], f"{more} more notes: see the report, or use --details"]
    for line in lines:
        _line(console, line)
    console.print(verdict_sentence(found), style="bold", soft_wrap=True)
    for each in found:
        _line(console, *_headline(each))


def _line(console, text: str, style: str = "") -> None:
    """One line, never wrapped: what does not fit is cut."""
    line = Text(text, style=style)
    if console.is_terminal:
        line.truncate(console.width, overflow="ellipsis")
    console.print(line, soft_wrap=True)


def _headline(each: Headline) -> tuple[str, str]:
    """A suite's line and its colour."""
    bounds = "" if each.estimate.low is None or each.figures.suite.exact \
        else f" ({formatting.interval(each.estimate)})"
    cells = ", ".join(f"{number} {verdict}" for verdict, number in sorted(each.cells.items()))
    total = sum(each.cells.values())
    tail = f"; {each.reason}" if each.reason else ""
    tail += f"; {total} comparisons: {cells}" if total > 1 else ""
    return (f"{each.figures.suite.name:<22}{each.phrase:<10}{each.peer} "
            f"{formatting.ratio(each.estimate.ratio)}{bounds}{tail}", _COLOURS[each.verdict])


def _cells(figures: Figures, console) -> None:
    """A table for each cell: a row for each subject, ratios to Tambour if it was measured."""
    for cell in figures.cells:
        title = f"{figures.suite.name}: {figures.suite.describe(cell)}"
        table = Table(title=title, caption="ratio to Tambour (lower is better) in brackets"
                      if OURS in figures.subjects else None)
        table.add_column("subject", no_wrap=True)
        for metric in figures.suite.metrics:
            table.add_column(f"{metric.title}, {metric.unit}", justify="right")
        for subject in figures.subjects:
            table.add_row(subject, *(_value(figures, cell, subject, metric)
                                     for metric in figures.suite.metrics))
        console.print(table)


def _value(figures: Figures, cell: dict, subject: str, metric) -> Text:
    text = formatting.quantity(figures.value(cell, subject, metric.name))
    estimate = figures.estimate(cell, subject, metric) if subject != OURS else None
    if estimate is None:
        return Text(text)
    best = " bold" if tables.is_best(figures, cell, metric, subject) else ""
    colour = _COLOURS[figures.verdict(cell, subject, metric)]
    return Text(f"{text} ({formatting.ratio(estimate.ratio)})", style=colour + best)
