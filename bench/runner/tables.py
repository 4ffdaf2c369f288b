"""The page's tables: one for each cell and metric, a row for each subject, four columns."""

from html import escape

from . import formatting
from .estimates import Verdict
from .figures import Figures
from .model import Metric
from .subjects import CONTROL, FLOOR, OURS, is_peer


def render(figures: Figures) -> str:
    """All cells, folded; the line of each says how Tambour compares with its best peer."""
    parts = []
    for cell in figures.cells:
        varying = figures.suite.describe(cell, omit=figures.constant())
        title = varying if len(figures.cells) > 1 else figures.suite.describe(cell)
        tables = "".join(_table(figures, cell, metric) for metric in figures.suite.metrics)
        parts.append(f"<details><summary>{escape(formatting.sentence_case(title))}"
                     f"{_summary(figures, cell)}</summary>"
                     f'<div class="abreast">{tables}</div></details>')
    return "\n".join(parts)


def _summary(figures: Figures, cell: dict) -> str:
    """The verdicts of a cell, one for each decisive metric."""
    words = []
    for metric in figures.suite.decisive_metrics:
        peer = figures.best(cell, metric)
        if not peer:
            continue
        verdict = figures.verdict(cell, peer, metric)
        estimate = figures.estimate(cell, peer, metric)
        words.append(f"{metric.title} <b class=\"{verdict}\">{phrase(verdict, metric)}</b>: "
                     f"{escape(peer)} {formatting.ratio(estimate.ratio)} "
                     f"({formatting.interval(estimate)})")
    return f"<small>{'; '.join(words)}</small>" if words else ""


def phrase(verdict: Verdict, metric: Metric) -> str:
    """A verdict in the words of a metric."""
    better, worse = metric.comparatives
    return {Verdict.FASTER: better, Verdict.SLOWER: worse}.get(verdict, verdict.value)


def _table(figures: Figures, cell: dict, metric: Metric) -> str:
    shown = [s for s in figures.subjects if figures.entry(cell, s, metric.name)]
    if not shown:
        return ""
    ours = figures.entry(cell, OURS, metric.name) is not None
    floor = figures.value(cell, FLOOR, metric.name)
    heads = ["subject", f"median, {metric.unit}"]
    heads += ["ratio to Tambour"] * ours + ["ratio to floor"] * bool(floor)
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    rows = "".join(_row(figures, cell, metric, s, ours, bool(floor)) for s in shown)
    more = "" if metric.better == "less" else ", higher is better"
    return (f"<table><caption>{escape(formatting.sentence_case(metric.title))}{more}"
            f"{_control(figures, cell, metric)}</caption><thead><tr>{top}</tr></thead>"
            f"<tbody>{rows}</tbody></table>")


def _row(figures: Figures, cell: dict, metric: Metric, subject: str, ours: bool,
         floor: bool) -> str:
    value = figures.value(cell, subject, metric.name)
    best = is_best(figures, cell, metric, subject)
    columns = [f'<td{" class=best" if best else ""}>{formatting.quantity(value)}</td>']
    if ours and subject == OURS:
        columns.append("<td>1</td>")
    elif ours:
        estimate = figures.estimate(cell, subject, metric)
        mark = figures.verdict(cell, subject, metric) if is_peer(subject) else "reference"
        span = f"<small>{formatting.interval(estimate)}</small>" \
            if estimate and estimate.low is not None and not figures.suite.exact else ""
        ratio = formatting.ratio(estimate.ratio) if estimate else "–"
        columns.append(f'<td class="{mark}">{ratio}{span}</td>')
    if floor:
        columns.append(f"<td>{formatting.ratio(figures.ratio_to_floor(cell, subject, metric))}"
                       "</td>")
    mark = ' class="ours"' if subject == OURS else ""
    return f"<tr{mark}><th>{escape(subject)}</th>{''.join(columns)}</tr>"


def is_best(figures: Figures, cell: dict, metric: Metric, subject: str) -> bool:
    """Whether no other library, nor Tambour, has a better median."""
    values = {s: figures.value(cell, s, metric.name) for s in figures.subjects
              if s == OURS or is_peer(s)}
    known = [v for v in values.values() if v is not None]
    return values.get(subject) is not None and values[subject] == metric.best(known)


def _control(figures: Figures, cell: dict, metric: Metric) -> str:
    """The A/A control of a cell, and how many rounds it has."""
    estimate = figures.estimate(cell, CONTROL, metric)
    if estimate is None:
        return ""
    return (f"<small>A/A control {formatting.ratio(estimate.ratio)}"
            f"{_bounds(estimate)}, {formatting.count(estimate.pairs, 'round')}</small>")


def _bounds(estimate) -> str:
    return "" if estimate.low is None else f" ({formatting.interval(estimate)})"


def plain(caption: str, head: list[str], rows: list[list[str]]) -> str:
    """A table of text."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th>{escape(row[0])}</th>" + "".join(f"<td>{escape(c)}</td>" for c in row[1:])
        + "</tr>" for row in rows)
    return (f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
            f"<tbody>{body}</tbody></table>")
