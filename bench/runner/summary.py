"""What a run says on the terminal at its end: the headline ratios, and what was left out."""

from rich.table import Table

from . import words
from .figures import Figures, headlines
from .suite import Suite

METRICS_ABREAST = 4  # what a terminal of 80 columns holds


def show(document: dict, suites: dict[str, Suite], console) -> None:
    """Tambour by each other subject for each metric; then the reasons of what is missing."""
    for suite in suites.values():
        figures = Figures(suite, document)
        rows = headlines(figures)
        if rows:
            for first in range(0, len(rows), METRICS_ABREAST):
                console.print(_ratios(suite, rows, rows[first:first + METRICS_ABREAST]))
        elif figures.entries:
            console.print(_medians(figures))
    lines = words.left_out_lines(document["left_out"], suites)
    for suite, subject, where, why in lines:
        console.print(f"left out: {suite}, {where}: {subject}: {why}", style="yellow",
                      markup=False, highlight=False, soft_wrap=True)
    for note in document["machine"].get("notes", []):
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)


def _ratios(suite: Suite, rows, shown) -> Table:
    """Subjects are the rows: there are more of them than a terminal has columns for."""
    kinds = {line.metric.better for line in rows}
    words_of = {"less": "below 1: Tambour takes less", "more": "above 1: Tambour does more"}
    hint = f" ({words_of[kinds.pop()]})" if len(kinds) == 1 else ""
    reasons = dict.fromkeys(words.unknown_noise(line) for line in shown if line.unknown)
    table = Table(title=f"{suite.title}: Tambour by each other{hint}",
                  caption="; ".join(reasons) or None)
    table.add_column("subject", no_wrap=True)
    for line in shown:
        tail = "" if hint else f" ({line.metric.better} is better)"
        table.add_column(line.words + tail, justify="right")
    for subject in dict.fromkeys(name for line in shown for name in line.ratios):
        table.add_row(subject, *(_ratio(line, subject) for line in shown))
    return table


def _ratio(line, subject: str) -> str:
    if subject not in line.ratios:
        return "–"
    text = words.ratio(line.ratios[subject][0])
    colour = {"gain": "green", "loss": "red", "even": ""}[line.verdict(subject)]
    return f"[{colour}]{text}[/]" if colour else text


def _medians(figures: Figures) -> Table:
    """Without Tambour among the subjects there is no ratio to it."""
    table = Table(title=f"{figures.suite.title}: medians")
    table.add_column("cell")
    table.add_column("metric")
    for subject in figures.subjects:
        table.add_column(subject, justify="right")
    for cell in figures.cells:
        for metric in figures.suite.metrics:
            table.add_row(figures.suite.describe(cell), metric.name,
                          *(words.quantity(figures.value(cell, s, metric.name))
                            for s in figures.subjects))
    return table
