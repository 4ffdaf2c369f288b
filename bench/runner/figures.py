"""Look into a document: cells, entries, ratios, noise. No opinion on how they are shown."""

import math
import statistics
from dataclasses import dataclass

from .model import Metric
from .subjects import BY_HAND, OURS
from .suite import Suite
from .words import listed

NOISE_LARGE = 0.05
SAMPLES_MIN = 3  # with fewer, nobody can say how far they waver


def _key(params: dict) -> tuple:
    return tuple(sorted(params.items()))


class Figures:
    """The results of one suite in a document."""

    def __init__(self, suite: Suite, document: dict) -> None:
        self.suite = suite
        self.entries = [e for e in document["results"] if e["suite"] == suite.name]
        self._metrics = {metric.name: metric for metric in suite.metrics}
        self._index = {(_key(e["params"]), e["subject"], e["metric"]): e for e in self.entries}
        cells = {_key(e["params"]): e["params"] for e in self.entries}
        self.cells: list[dict] = list(cells.values())
        measured = {e["subject"] for e in self.entries}
        known = [s.name for s in suite.subjects if s.name in measured]
        self.subjects: list[str] = known + sorted(measured - set(known))

    def entry(self, params: dict, subject: str, metric: str) -> dict | None:
        """The entry of the document, or None."""
        return self._index.get((_key(params), subject, metric))

    def value(self, params: dict, subject: str, metric: str, statistic: str = "median"):
        """Its median, minimum or maximum, or None."""
        entry = self.entry(params, subject, metric)
        if entry and statistic == "max":
            return max(entry["samples"])
        return entry[statistic] if entry else None

    def ratio(self, params: dict, subject: str, base: str, metric: str) -> float | None:
        """Median of `subject` by median of `base` in one cell, or None where one is missing."""
        above = self.value(params, subject, metric)
        below = self.value(params, base, metric)
        return above / below if above is not None and below else None

    def best(self, params: dict, metric: Metric, statistic: str = "median"):
        """The best value in a cell, but for what is by hand."""
        values = [self.value(params, s, metric.name, statistic)
                  for s in self.subjects if s not in BY_HAND]
        values = [v for v in values if v is not None]
        return metric.best(values) if values else None

    def varying(self) -> list[str]:
        """Parameters with more than one value in these results (an absent one counts as one)."""
        names = dict.fromkeys(name for cell in self.cells for name in cell)
        return [n for n in names if len({cell.get(n) for cell in self.cells}) > 1]

    def constant(self) -> tuple[str, ...]:
        """Parameters that every cell has alike: said once, not in each heading."""
        return tuple(n for n in dict.fromkeys(n for c in self.cells for n in c)
                     if n not in self.varying())

    def groups(self, but: tuple[str, ...]) -> list[tuple[dict, list[dict]]]:
        """Cells that differ only in the parameters `but`: (what they share, the cells)."""
        found: dict[tuple, tuple[dict, list[dict]]] = {}
        for cell in self.cells:
            shared = {name: value for name, value in cell.items() if name not in but}
            found.setdefault(_key(shared), (shared, []))[1].append(cell)
        return list(found.values())

    def heading(self, name: str, title: str, shared: dict,
                said: tuple[str, ...] = ()) -> tuple[str, str]:
        """Name and title of a chart of the cells that share these parameters.

        Both tell it from the charts of other cells, because a run may give any parameter several
        values. `said` are the parameters that the title names already, or the chart's section.
        """
        apart = {n: v for n, v in shared.items() if n in self.varying()}
        words = [n if v is True else f"{n}{v}" for n, v in apart.items() if v is not False]
        unsaid = {n: v for n, v in apart.items() if n not in said}
        tail = f", {self.suite.describe(unsaid)}" if unsaid else ""
        return "-".join([name, *words]), title + tail

    def spread(self, params: dict, subject: str, metric: str) -> float | None:
        """How far a subject's median stands from its best sample; it needs three rounds.

        The best is the undisturbed one: what disturbs a run makes a time longer and a rate lower.
        """
        entry = self.entry(params, subject, metric)
        if not self.suite.noisy or not entry or len(entry["samples"]) < SAMPLES_MIN:
            return None
        best, median = self._metrics[metric].best(entry["samples"]), entry["median"]
        less, more = sorted((best, median))
        return more / less - 1 if less > 0 else None

    def noise(self, params: dict, metric: str) -> float | None:
        """The median of the subjects' spreads in this cell. Differences below it decide nothing."""
        spreads = [self.spread(params, subject, metric) for subject in self.subjects]
        spreads = [spread for spread in spreads if spread is not None]
        return statistics.median(spreads) if spreads else None

    def noise_between(self, params: dict, metric: str, one: str, other: str) -> float | None:
        """What a difference between two subjects must exceed: the cell's noise and their own.

        None where the noise of one of them is unknown; a count has none.
        """
        if not self.suite.noisy:
            return 0.0
        known = [self.noise(params, metric), self.spread(params, one, metric),
                 self.spread(params, other, metric)]
        return None if None in known else max(known)

    def noise_overall(self, metric: str) -> float | None:
        """The median of the cells' noise."""
        cells = [self.noise(cell, metric) for cell in self.cells]
        cells = [c for c in cells if c is not None]
        return statistics.median(cells) if cells else None


def geometric_mean(values: list[float]) -> float:
    """The mean of ratios that doesn't depend on which side is the base."""
    return math.exp(statistics.fmean(math.log(v) for v in values))


@dataclass
class Headline:
    """Tambour's median by each other's, over the cells of one variant of one metric."""

    words: str
    metric: Metric
    ratios: dict[str, tuple[float, float, float]]  # geometric mean, least, greatest
    noises: dict[str, float | None]  # what a difference to that subject must exceed; None: unknown

    @property
    def unknown(self) -> list[str]:
        """Competitors of whom fewer than three samples, or ours, tell no noise."""
        return [s for s, noise in self.noises.items() if noise is None and s not in BY_HAND]

    def verdict(self, subject: str) -> str:
        """"gain" or "loss" for Tambour.

        "even" within the noise, where that is unknown, or against bare system calls.
        """
        mean, noise = self.ratios[subject][0], self.noises[subject]
        if subject in BY_HAND or noise is None or abs(mean - 1) <= max(0.005, noise):
            return "even"
        return "gain" if (mean < 1) == (self.metric.better == "less") else "loss"


def headlines(figures: Figures) -> list[Headline]:
    """One for each metric and variant.

    A variant is one choice of the parameters that are not numbers, such as with timeouts.
    """
    if OURS not in figures.subjects:
        return []
    numbers = tuple(p.name for p in figures.suite.parameters if not p.flag and not p.choices)
    found = []
    for metric in figures.suite.metrics:
        for shared, cells in figures.groups(numbers):
            ratios, noises = {}, {}
            for subject in figures.subjects:
                both = [c for c in cells if figures.ratio(c, OURS, subject, metric.name)]
                each = [figures.ratio(c, OURS, subject, metric.name) for c in both]
                if each and subject != OURS:
                    ratios[subject] = (geometric_mean(each), min(each), max(each))
                    between = [figures.noise_between(c, metric.name, OURS, subject) for c in both]
                    noises[subject] = None if None in between else statistics.median(between)
            variant = figures.suite.describe(shared, but=figures.constant())
            words = metric.title if variant == figures.suite.title \
                else f"{metric.title}, {variant}"
            if ratios:
                found.append(Headline(words, metric, ratios, noises))
    return found


def noise_notes(suites: list[Suite], document: dict) -> list[str]:
    """A line for each suite on which this machine was too noisy for small differences."""
    notes = []
    for suite in suites:
        figures = Figures(suite, document)
        found = {m.name: figures.noise_overall(m.name) for m in suite.metrics}
        loud = [f"{noise:.0%} ({name})" for name, noise in found.items()
                if noise is not None and noise > NOISE_LARGE]
        if loud:
            notes.append(f"{suite.name}: the machine was noisy: medians stand {listed(loud)} away "
                         "from the best samples; a smaller difference decides nothing")
    return notes
