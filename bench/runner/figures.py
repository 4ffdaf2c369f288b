"""The results of one suite in a document: cells, values, ratios to Tambour, verdicts."""

from collections import Counter
from dataclasses import dataclass

from . import disturbance, estimates
from .estimates import PAIRS_MIN, Estimate, Verdict
from .model import Metric
from .subjects import CONTROL, FLOOR, OURS, is_peer
from .suite import Suite


def _key(params: dict) -> tuple:
    return tuple(sorted(params.items()))


def _rounds(entry: dict):
    return zip(entry["rounds"], entry["samples"], entry["disturbance"])


class Figures:
    """The results of one suite."""

    def __init__(self, suite: Suite, document: dict) -> None:
        self.suite = suite
        self.entries = [e for e in document["results"] if e["suite"] == suite.name]
        self._index = {(_key(e["params"]), e["subject"], e["metric"]): e for e in self.entries}
        cells = {_key(e["params"]): e["params"] for e in self.entries}
        self.cells: list[dict] = list(cells.values())
        measured = {e["subject"] for e in self.entries}
        known = [s.name for s in suite.subjects if s.name in measured]
        extra = sorted(measured - set(known) - {CONTROL})
        # Without the A/A control, which is no subject to report about.
        self.subjects: list[str] = known + extra

    def entry(self, params: dict, subject: str, metric: str) -> dict | None:
        """The entry of the document, or None."""
        return self._index.get((_key(params), subject, metric))

    def value(self, params: dict, subject: str, metric: str, statistic: str = "median"):
        """The median or the minimum, or None."""
        entry = self.entry(params, subject, metric)
        return entry[statistic] if entry else None

    def ratio_to_floor(self, params: dict, subject: str, metric: Metric) -> float | None:
        """The ratio of the medians, or None if one is missing or zero."""
        values = [self.value(params, name, metric.name) for name in (subject, FLOOR)]
        return None if None in values else metric.ratio(*values)

    def ratios(self, params: dict, subject: str, metric: Metric) -> list[float]:
        """The subject's ratio to Tambour in each round, without the rounds that were disturbed."""
        ours, theirs = (self.entry(params, name, metric.name) for name in (OURS, subject))
        if not ours or not theirs:
            return []
        by_round = {index: (value, score) for index, value, score in _rounds(ours)}
        pairs = [(metric.ratio(value, by_round[index][0]), max(score, by_round[index][1]))
                 for index, value, score in _rounds(theirs) if index in by_round]
        pairs = [(ratio, score) for ratio, score in pairs if ratio is not None]
        kept = disturbance.least_disturbed([score for _, score in pairs], PAIRS_MIN)
        return [pairs[at][0] for at in kept]

    def estimate(self, params: dict, subject: str, metric: Metric) -> Estimate | None:
        """The subject's ratio to Tambour in one cell."""
        return estimates.estimate(self.ratios(params, subject, metric), self.suite.exact)

    def verdict(self, params: dict, subject: str, metric: Metric) -> Verdict:
        """The verdict on Tambour against a subject in one cell."""
        return estimates.verdict(self.estimate(params, subject, metric),
                                 self.estimate(params, CONTROL, metric))

    def best(self, params: dict, metric: Metric) -> str | None:
        """The peer with the lowest ratio to Tambour in one cell."""
        found = {name: self.estimate(params, name, metric) for name in self.subjects
                 if is_peer(name)}
        found = {name: each.ratio for name, each in found.items() if each}
        return min(found, key=found.get) if found else None

    # Groups of cells.

    def varying(self) -> list[str]:
        """Parameters with more than one value in these results; an absent one counts as a value."""
        names = dict.fromkeys(name for cell in self.cells for name in cell)
        return [n for n in names if len({cell.get(n) for cell in self.cells}) > 1]

    def constant(self) -> tuple[str, ...]:
        """Parameters with the same value in all cells: reported once."""
        return tuple(n for n in dict.fromkeys(n for c in self.cells for n in c)
                     if n not in self.varying())

    def groups(self, by: tuple[str, ...]) -> list[tuple[dict, list[dict]]]:
        """Cells that differ only in the parameters `by`: (the params they share, the cells)."""
        found: dict[tuple, tuple[dict, list[dict]]] = {}
        for cell in self.cells:
            shared = {name: value for name, value in cell.items() if name not in by}
            found.setdefault(_key(shared), (shared, []))[1].append(cell)
        return list(found.values())

    def heading(self, name: str, title: str, shared: dict,
                titled: tuple[str, ...] = ()) -> tuple[str, str]:
        """File name and title of a chart of the cells that share these parameters.

        Both differ from those of the charts of other cells, because a run may give any parameter
        several values. `titled` are parameters that the title, or the chart's section, contains.
        """
        apart = {n: v for n, v in shared.items() if n in self.varying()}
        words = [n if v is True else f"{n}{v}" for n, v in apart.items() if v is not False]
        missing = {n: v for n, v in apart.items() if n not in titled}
        tail = f", {self.suite.describe(missing)}" if missing else ""
        return "-".join([name, *words]), title + tail


@dataclass
class Headline:
    """The result of one suite: Tambour against the best peer."""

    figures: Figures
    peer: str
    estimate: Estimate
    control: Estimate | None
    cells: Counter  # of verdicts against the best peer of each comparison

    @property
    def verdict(self) -> Verdict:
        return estimates.verdict(self.estimate, self.control)

    @property
    def phrase(self) -> str:
        """The verdict in words, such as "faster", or "smaller" for bytes."""
        better, worse = self.figures.suite.decisive_metrics[0].comparatives
        words = {Verdict.FASTER: better, Verdict.SLOWER: worse}
        return words.get(self.verdict, self.verdict.value)

    @property
    def reason(self) -> str:
        """Why the verdict is undecided; empty if it is not."""
        if self.verdict != Verdict.UNDECIDED:
            return ""
        return estimates.why_undecided(self.estimate, self.control)


def comparisons(figures: Figures) -> list[tuple[dict, Metric]]:
    """The cells and metrics on which the verdict of a suite is based."""
    return [(cell, metric) for cell in figures.cells for metric in figures.suite.decisive_metrics
            if figures.value(cell, OURS, metric.name)]


def overall(figures: Figures, subject: str) -> tuple[Estimate | None, int]:
    """A subject's ratio to Tambour in the whole suite, and how many comparisons it covers.

    Round by round, the geometric mean over the comparisons that have this subject; of these means
    the median and its interval.
    """
    series = [figures.ratios(cell, subject, metric) for cell, metric in comparisons(figures)]
    series = [ratios for ratios in series if ratios]
    return estimates.estimate(estimates.geometric_means(series), figures.suite.exact), len(series)


def headline(figures: Figures) -> Headline | None:
    """The result of a suite; None if Tambour or every peer is missing.

    The best peer is the one with the lowest ratio among those that ran in the most comparisons.
    """
    found = {name: overall(figures, name) for name in figures.subjects if is_peer(name)}
    found = {name: each for name, each in found.items() if each[0]}
    if not found:
        return None
    covered = max(count for _, count in found.values())
    complete = {name: each for name, (each, count) in found.items() if count == covered}
    peer = min(complete, key=lambda name: complete[name].ratio)
    cells = Counter(figures.verdict(cell, figures.best(cell, metric), metric)
                    for cell, metric in comparisons(figures) if figures.best(cell, metric))
    return Headline(figures, peer, complete[peer], overall(figures, CONTROL)[0], cells)


def headlines(document: dict, suites: dict[str, Suite]) -> list[Headline]:
    """The results of all suites that have one."""
    found = [headline(Figures(suite, document)) for suite in suites.values()]
    return [each for each in found if each]
