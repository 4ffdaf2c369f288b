"""The words the runner uses: metric, subject, parameter, cell, outcome.

A *cell* is one choice of parameters of one suite. A *subject* is one program that plays it. A
*round* spawns each subject of a cell once and yields one *sample* for each metric.
"""

from dataclasses import dataclass, field


class Left(Exception):
    """A subject or a cell can't be measured; str() is the reason that the report shows."""


class TimeLimit(Left):
    """The child was killed at its time limit. Told apart, because waiting again is costly."""


@dataclass(frozen=True)
class Metric:
    """What is measured. `better` is "less" or "more"."""

    name: str
    unit: str
    title: str
    better: str = "less"

    def best(self, values):
        """The best of some values."""
        return min(values) if self.better == "less" else max(values)


@dataclass(frozen=True)
class Subject:
    """A program under measurement: the executable `<program>-<peer>` and its environment."""

    name: str
    peer: str
    env: tuple[tuple[str, str], ...] = ()
    backend: str = ""  # what the program must report, where the subject is that backend
    fds_max: int = 0  # highest number of open files it can watch; 0: no limit of its own


@dataclass(frozen=True)
class Parameter:
    """A named option of a suite, given as a comma list: one cell for each combination."""

    name: str
    help: str
    default: tuple
    low: int = 1
    high: int = 10**9
    flag: bool = False
    choices: tuple[str, ...] = ()
    # Left out of a cell's params while it has its default: a variant that most runs don't name.
    silent: bool = False
    words: str = ""  # how the report says a value, such as "{:,} µs"; plainly "{:,} name"

    def parse(self, text: str) -> tuple:
        """The values in a comma list; ValueError says what is wrong with it."""
        values = [self._value(word.strip()) for word in text.split(",")]
        return tuple(dict.fromkeys(values))

    def _value(self, word: str):
        if self.flag:
            if word not in ("yes", "no"):
                raise ValueError(f"--{self.name} takes yes, no or both as no,yes, not '{word}'")
            return word == "yes"
        if self.choices:
            if word not in self.choices:
                known = ", ".join(self.choices)
                raise ValueError(f"--{self.name} takes {known}, not '{word}'")
            return word
        if not (word.isascii() and word.isdigit()):
            raise ValueError(f"--{self.name} takes whole numbers, not '{word}'")
        if not self.low <= int(word) <= self.high:
            raise ValueError(f"--{self.name} {word} is not between {self.low:,} and {self.high:,}")
        return int(word)

    def show(self, values) -> str:
        """The comma list that gives these values."""
        words = {True: "yes", False: "no"}
        return ",".join(words[v] if self.flag else str(v) for v in values)

    def phrase(self, value) -> str:
        """One value as the report says it: "1,000 pairs", "without timeouts"."""
        if self.flag:
            return f"{'with' if value else 'without'} {self.name}"
        if self.words:
            return self.words.format(value)
        return f"{self.name} {value}" if self.choices else f"{value:,} {self.name}"


@dataclass(frozen=True)
class Cell:
    """One choice of parameters of one suite; hashable."""

    suite: str
    items: tuple[tuple[str, object], ...]

    @property
    def params(self) -> dict:
        return dict(self.items)

    def get(self, name, otherwise=None):
        return self.params.get(name, otherwise)


@dataclass
class Outcome:
    """What one spawn of one subject told: who it is, and one sample for each metric."""

    version: str
    backend: str
    samples: dict[str, float] = field(default_factory=dict)
