"""Put the report together: charts beside the page, the page itself."""

from pathlib import Path

from . import charts, page
from .figures import Figures
from .suite import Suite


def write(document: dict, suites: dict[str, Suite], directory: Path) -> Path:
    """Write DIRECTORY/index.html and the charts; returns the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    asked = {}
    for suite in suites.values():
        figures = Figures(suite, document)
        if figures.entries:
            asked[suite.name] = [(chart, figures) for chart in suite.charts(figures)
                                 if worth_drawing(chart)]
    drawn = {}
    try:
        for name, pairs in asked.items():
            drawn[name] = [charts.draw(chart, figures, directory) for chart, figures in pairs]
    except ImportError:
        document["machine"].setdefault("notes", []).append(
            "no charts: the Python package matplotlib is missing (Debian: python3-matplotlib)")
    path = directory / "index.html"
    path.write_text(page.render(document, suites, drawn), encoding="utf-8")
    return path


def clear(directory: Path) -> None:
    """Remove the charts of an earlier run."""
    for path in [*directory.glob("*.png"), *directory.glob("*.svg")]:
        path.unlink()


def worth_drawing(chart) -> bool:
    """A line needs two points; one is a row of a table, not a chart."""
    return isinstance(chart, charts.Bars) or len({cell[chart.x] for cell in chart.cells}) > 1
