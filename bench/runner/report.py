"""Writes the report: the page, and the charts beside it."""

from pathlib import Path

from . import charts, page
from .figures import Figures
from .suite import Suite


def write(document: dict, suites: dict[str, Suite], directory: Path) -> Path:
    """Writes DIRECTORY/index.html and the charts; returns the path of the page."""
    directory.mkdir(parents=True, exist_ok=True)
    chosen = {}
    for suite in suites.values():
        figures = Figures(suite, document)
        if figures.entries:
            chosen[suite.name] = [(chart, figures) for chart in suite.charts(figures)
                                  if worth_drawing(chart)]
    drawn = {}
    try:
        for name, pairs in chosen.items():
            drawn[name] = [charts.draw(chart, figures, directory) for chart, figures in pairs]
    except ImportError:
        document["machine"].setdefault("notes", []).append(
            "no charts: the Python package matplotlib is missing (Debian: python3-matplotlib)")
    path = directory / "index.html"
    path.write_text(page.render(document, suites, drawn), encoding="utf-8")
    return path


def clear(directory: Path) -> None:
    """Removes the charts of an earlier run."""
    for path in [*directory.glob("*.png"), *directory.glob("*.svg")]:
        path.unlink()


def worth_drawing(chart) -> bool:
    """A line needs two points, and bars need more than the interval plot of the suite shows."""
    if isinstance(chart, charts.Bars):
        return True
    return len({cell[chart.x] for cell in chart.cells}) > 1
