"""The page's tables of figures: one for each cell, a row for each subject."""

from html import escape

from . import words
from .figures import Figures
from .subjects import BY_HAND, FLOOR, OURS

METRICS_ABREAST = 2
OPEN = 2  # how many cells stand open; the others unfold


def render(figures: Figures) -> str:
    """All cells: median, best, ratio to the floor and to Tambour, for each metric."""
    constant = figures.constant()
    out = ["<h3>Figures</h3>",
           '<p class="soft">Ratios are of medians; the best of each column, floor aside, stands '
           "out. ≈ marks a difference from Tambour within the noise of this cell or of the "
           "two, or of which fewer than three samples tell no noise.</p>"]
    for at, cell in enumerate(figures.cells):
        title = figures.suite.describe(cell, but=constant)
        if len(figures.cells) == 1:
            title = figures.suite.describe(cell)
        out.append(f'<details{" open" if at < OPEN else ""}><summary>{escape(title)}</summary>')
        metrics = figures.suite.metrics
        out.append('<div class="abreast">')
        for first in range(0, len(metrics), METRICS_ABREAST):
            out.append(_table(figures, cell, metrics[first:first + METRICS_ABREAST]))
        out.append("</div></details>")
    return "\n".join(out)


def _table(figures: Figures, cell: dict, metrics) -> str:
    has_floor = any(figures.entry(cell, FLOOR, m.name) for m in metrics)
    has_ours = any(figures.entry(cell, OURS, m.name) for m in metrics)
    heads = {m.name: ["median", _extreme(m)] if figures.suite.noisy else ["count"] for m in metrics}
    for each in heads.values():
        each += ["× floor"] * has_floor + ["× Tambour"] * has_ours
    top = "".join(f'<th class="group start" colspan="{len(heads[m.name])}">'
                  f"{escape(_head(figures, cell, m))}</th>" for m in metrics)
    second = "".join(f'<th{_start(at)}>{head}</th>' for m in metrics
                     for at, head in enumerate(heads[m.name]))
    rows = []
    for subject in figures.subjects:
        if not any(figures.entry(cell, subject, m.name) for m in metrics):
            continue
        cells = "".join(_cells(figures, cell, subject, m, has_floor, has_ours) for m in metrics)
        ours = ' class="ours"' if subject == OURS else ""
        rows.append(f"<tr{ours}><th>{escape(subject)}</th>{cells}</tr>")
    return (f'<div class="scroll"><table><thead><tr><th rowspan="2">subject</th>{top}</tr>'
            f'<tr>{second}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>')


def _head(figures: Figures, cell: dict, metric) -> str:
    noise = figures.noise(cell, metric.name)
    tail = "" if noise is None else f" · noise {noise:.1%}"
    if noise is None and figures.suite.noisy:
        tail = " · noise unknown"
    unit = "" if metric.unit in metric.title else f", {metric.unit}"
    kind = "" if metric.better == "less" else " · more is better"
    return f"{metric.title}{unit}{kind}{tail}"


def _extreme(metric) -> str:
    """The statistic that stands for the best sample."""
    return "min" if metric.better == "less" else "max"


def _start(at: int) -> str:
    return ' class="start"' if at == 0 else ""


def _cells(figures: Figures, cell: dict, subject: str, metric, has_floor: bool,
           has_ours: bool) -> str:
    median = figures.value(cell, subject, metric.name)
    extreme = figures.value(cell, subject, metric.name, _extreme(metric))
    to_ours = figures.ratio(cell, subject, OURS, metric.name)
    noise = figures.noise_between(cell, metric.name, OURS, subject)
    near = to_ours is not None and subject != OURS and (noise is None or abs(to_ours - 1) < noise)
    shown = [(words.quantity(median), _best(figures, cell, subject, metric, "median", median))]
    if figures.suite.noisy:
        shown.append((words.quantity(extreme),
                      _best(figures, cell, subject, metric, _extreme(metric), extreme)))
    if has_floor:
        shown.append((words.ratio(figures.ratio(cell, subject, FLOOR, metric.name)), ""))
    if has_ours:
        shown.append((("≈ " if near else "") + words.ratio(to_ours), ""))
    return "".join(f'<td class="{"start " * (at == 0)}{mark}">{text}</td>'
                   for at, (text, mark) in enumerate(shown))


def _best(figures, cell, subject, metric, statistic, value) -> str:
    best = figures.best(cell, metric, statistic)
    return "best" if subject not in BY_HAND and value is not None and value == best else ""
