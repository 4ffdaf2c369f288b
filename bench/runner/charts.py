"""Draws charts with matplotlib: PNG and SVG files, and SVG for the page.

In the SVG the colours are CSS variables, so that page and file follow the reader's light or dark
scheme.
"""

import io
import itertools
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import palette
from .figures import Figures

_LEGEND_ABREAST = 4
# Placeholders for the page's colours, different from those of all subjects; see _themed.
_STAND_IN = {"paper": "#fefefd", "ink": "#010203", "soft": "#565e69", "line": "#d4d9e0"}


@dataclass
class Lines:
    """A chart of lines: a metric over a numeric parameter, one line for each subject."""

    name: str  # of the files
    section: str  # heading under which charts of a suite stand together
    title: str
    metric: str
    x: str
    cells: list[dict] = field(default_factory=list)
    x_label: str = ""
    y_label: str = ""
    scale: float = 1.0  # factor from the metric's unit to the axis's
    # Subjects of another order of magnitude: drawn, but the axis is not extended for them.
    clipped: tuple[str, ...] = ()


@dataclass
class Bars:
    """A chart of bars: a metric of each subject, one bar for each cell."""

    name: str
    section: str
    title: str
    metric: str
    cells: list[dict] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # of the cells
    x_label: str = ""


@dataclass
class Drawn:
    """A drawn chart: the file's name without suffix, and the SVG for the page."""

    name: str
    section: str
    title: str
    svg: str
    subjects: list[str]
    wide: bool
    clipped: list[str]  # subjects that may exceed the axis


def draw(chart, figures: Figures, directory: Path) -> Drawn:
    """Writes NAME.png and NAME.svg with a legend; returns the SVG without one, for the page."""
    directory.mkdir(parents=True, exist_ok=True)
    paint = _lines if isinstance(chart, Lines) else _bars
    alone, subjects = paint(chart, figures, legend=True)
    alone.savefig(directory / f"{chart.name}.png", dpi=160)
    (directory / f"{chart.name}.svg").write_text(_standalone(_svg(alone)))
    inside, _ = paint(chart, figures, legend=False)
    svg = _prefixed(_themed(_svg(inside)), chart.name)
    clipped = [s for s in subjects if s in getattr(chart, "clipped", ())]
    label = f'role="img" aria-label="{chart.title}"'
    svg = svg.replace("<svg ", f"<svg {label} ", 1)
    return Drawn(chart.name, chart.section, chart.title, svg, subjects, isinstance(chart, Bars),
                 clipped)


# Drawing. matplotlib is imported late, because it is slow to import and may be missing.

_STYLE = {
    "font.family": "sans-serif", "font.size": 10, "svg.fonttype": "none",
    "svg.hashsalt": "tambour", "text.color": "#010203", "axes.edgecolor": "#565e69",
    "axes.labelcolor": "#565e69", "axes.titlecolor": "#010203", "xtick.color": "#565e69",
    "ytick.color": "#565e69", "grid.color": "#d4d9e0", "figure.facecolor": "#fefefd",
    "axes.facecolor": "#fefefd", "axes.spines.top": False, "axes.spines.right": False,
    "grid.linewidth": 0.7, "axes.titlesize": 11, "axes.titleweight": "bold",
}


def _figure(width: float, height: float, left: float, below: float, right: float = 0.16):
    """A figure with one set of axes. Margins are in inches, so that adjacent charts align."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(_STYLE)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(left / width, below / height, 1 - right / width, 1 - 0.34 / height)
    return figure, figure.add_subplot()


def _lines(chart: Lines, figures: Figures, legend: bool):
    below = 0.56 + (0.2 + 0.2 * math.ceil(len(figures.subjects) / _LEGEND_ABREAST)) * legend
    largest = max(cell[chart.x] for cell in chart.cells)
    # Half of the last label, which is centred below its tick, near the end of the axis.
    right = max(0.16, 0.04 * len(f"{largest:,}"))
    figure, axes = _figure(5.6, 3.15 + below, 0.82, below, right)
    drawn, values = [], []
    for subject in figures.subjects:
        points = [(cell[chart.x], figures.value(cell, subject, chart.metric,
                                                figures.suite.quoted)) for cell in chart.cells]
        points = sorted((x, y * chart.scale) for x, y in points if y)
        if not points:
            continue
        look = palette.look(subject)
        ours = subject == "tambour"
        axes.plot(*zip(*points), color=look.light, marker=look.marker, label=subject,
                  markersize=7 if ours else 5, linewidth=look.width, zorder=5 if ours else 3,
                  dashes=look.dash or (None, None), markeredgewidth=1.2,
                  markeredgecolor=look.light, markerfacecolor=look.light if look.width > 1.2
                  else "#fefefd")
        drawn.append(subject)
        values += [y for _, y in points if subject not in chart.clipped]
    axes.set(xscale="log", yscale="log", xlabel=chart.x_label, ylabel=chart.y_label)
    # The title of a file contains the section, which is a heading in the page.
    variant = f", {chart.section}" if legend and chart.section else ""
    axes.set_title(chart.title + variant, loc="left")
    axes.grid(True, which="major")
    _x_ticks(axes, sorted({cell[chart.x] for cell in chart.cells}))
    if values:
        _y_ticks(axes, min(values), max(values))
    if legend and drawn:
        figure.legend(loc="lower left", bbox_to_anchor=(0, 0), ncols=_LEGEND_ABREAST,
                      frameon=False, fontsize=8.5, handlelength=2.6)
    return figure, drawn


def _x_ticks(axes, numbers: list[int]) -> None:
    """A tick at each measured number, unless the labels would overlap."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    kept = []
    span = math.log(numbers[-1] / numbers[0]) or 1.0
    for number in numbers:
        if not kept or math.log(number / kept[-1]) / span > 0.09:
            kept.append(number)
    axes.xaxis.set_major_locator(FixedLocator(kept))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.set_xlim(numbers[0] / 1.15, numbers[-1] * 1.15)


def _y_ticks(axes, least: float, most: float) -> None:
    """Round numbers: matplotlib's log axis shows one tick or none in a narrow range."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = least / 1.12, most * 1.12
    axes.yaxis.set_major_locator(FixedLocator(round_numbers(low, high)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.6g}"))
    axes.set_ylim(low, high)


def round_numbers(low: float, high: float) -> list[float]:
    """About five ticks between low and high: even steps within a decade, else 1, 2, 5 or 1."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low > 6:
        steps = (1, 2, 5) if high / low < 30 else (1, 3) if high / low < 300 else (1,)
        ticks = [s * 10.0**p for p, s in itertools.product(powers, steps)]
    else:
        sizes = [s * 10.0**p for p, s in itertools.product(range(powers[0] - 2, powers[-1] + 1),
                                                           (1, 2, 5))]
        step = next(size for size in sizes if (high - low) / size <= 9)
        ticks = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
    kept = []
    for tick in ticks:
        far = not kept or math.log(tick / kept[-1]) > 0.07 * math.log(high / low)
        if low <= tick <= high and far:
            kept.append(tick)
    return kept


def _bars(chart: Bars, figures: Figures, legend: bool):
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    subjects = [s for s in figures.subjects
                if any(figures.value(c, s, chart.metric) for c in chart.cells)]
    each = 0.8 / max(1, len(chart.cells))
    height = 0.9 + 0.46 * len(subjects)
    figure, axes = _figure(5.6, height, 0.3 + 0.08 * max(map(len, subjects)), 0.5)
    most = max(figures.value(c, s, chart.metric) or 0 for c in chart.cells for s in subjects)
    for row, subject in enumerate(subjects):
        for at, cell in enumerate(chart.cells):
            value = figures.value(cell, subject, chart.metric)
            if not value:
                continue
            place = row + (at - (len(chart.cells) - 1) / 2) * each
            colour = palette.look(subject).light
            axes.barh(place, value, each * 0.86, color=colour if at == 0 else "#fefefd",
                      edgecolor=colour, linewidth=1.2, zorder=3)
            says_which = row == 0 and len(chart.cells) > 1
            words = f"{value:,.0f}" + (f"  {chart.labels[at]}" if says_which else "")
            axes.text(value + most * 0.012, place, words, va="center", fontsize=8.5,
                      color="#010203")
    axes.set_yticks(range(len(subjects)), subjects)
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.3)
    # The words below the last one would be cut off.
    axes.set_xticks([at for at in MaxNLocator(6).tick_values(0, most * 1.3) if at <= most * 1.2])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.set_xlabel(chart.x_label)
    axes.set_title(chart.title, loc="left")
    axes.grid(True, axis="x")
    axes.tick_params(axis="y", length=0, labelcolor="#010203")
    return figure, subjects


# Conversion of matplotlib's SVG.


def _svg(figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"font: ((?:\w+ )*[\d.]+px)[^;\"]*", r"font: \1 system-ui, sans-serif", text)
    return re.sub(r'(<svg [^>]*?) height="[^"]*"([^>]*?) width="[^"]*"|'
                  r'(<svg [^>]*?) width="[^"]*"([^>]*?) height="[^"]*"',
                  lambda m: "".join(part or "" for part in m.groups()), text, count=1)


def _themed(svg: str) -> str:
    """Replaces colours by CSS variables."""
    for name, colour in _STAND_IN.items():
        svg = svg.replace(colour, f"var(--{name})")
    for look in palette.looks():
        svg = svg.replace(look.light, f"var(--c-{look.colour})")
    return svg


def _standalone(svg: str) -> str:
    """The SVG as a file, with the variables it needs."""
    head, body = _themed(svg).split(">", 1)
    return f"{head}><style>{palette.stylesheet()}</style>{body}"


def _prefixed(svg: str, name: str) -> str:
    """Makes ids unique, because many charts are in one page."""
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return svg.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
