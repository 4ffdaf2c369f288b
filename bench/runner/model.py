"""The terms of the runner: metric, subject, parameter, cell, sample.

A *cell* is one combination of parameter values of one suite. A *subject* is one program that is
measured in it. In each *round* of a cell every subject runs once; one run yields one *sample*,
which holds a value for each metric.
"""

from dataclasses import dataclass, field


class NotMeasured(Exception):
    """A subject or a cell cannot be measured; str() is the reason shown in the report."""


class TimeLimitExceeded(NotMeasured):
    """The program was killed at its time limit. A type of its own, because retrying is costly."""


@dataclass(frozen=True)
class Metric:
    """A measured quantity. `better` is "less" or "more"."""

    name: str
    unit: str
    title: str
    better: str = "less"
    # How the report says that Tambour's value is better or worse than a peer's.
    comparatives: tuple[str, str] = ("faster", "slower")

    def best(self, values):
        """The best of some values."""
        return min(values) if self.better == "less" else max(values)

    def ratio(self, subject: float, tambour: float) -> float | None:
        """A subject's ratio to Tambour, lower is better for the subject.

        The ratio of a rate is inverted: 2 means twice the time for each message. None if a value is
        zero.
        """
        if not subject or not tambour:
            return None
        return subject / tambour if self.better == "less" else tambour / subject


@dataclass(frozen=True)
class Subject:
    """A program under measurement: the executable `<program>-<peer>` and its environment."""

    name: str
    peer: str
    env: tuple[tuple[str, str], ...] = ()
    backend: str = ""  # the backend that the program must report, if the subject names one
    fds_max: int = 0  # the highest file descriptor it can watch, plus one; 0: no limit of its own


@dataclass(frozen=True)
class Parameter:
    """A named option of a suite, given as a comma-separated list of values."""

    name: str
    help: str
    default: tuple
    low: int = 1
    high: int = 10**9
    flag: bool = False
    choices: tuple[str, ...] = ()
    # Omitted from a cell's params while it has its default value.
    silent: bool = False
    # Of a value in the report, such as "{:,} µs"; by default "{:,} name". For a flag, what it is
    # called: "with ...".
    format: str = ""

    def parse(self, text: str) -> tuple:
        """The values of a comma-separated list; ValueError names the invalid one."""
        values = [self._value(word.strip()) for word in text.split(",")]
        return tuple(dict.fromkeys(values))

    def _value(self, word: str):
        if self.flag:
            if word not in ("yes", "no"):
                raise ValueError(f"--{self.name} takes yes, no or no,yes, not '{word}'")
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
        """The comma-separated list of these values; the inverse of parse()."""
        words = {True: "yes", False: "no"}
        return ",".join(words[v] if self.flag else str(v) for v in values)

    def phrase(self, value) -> str:
        """One value as the report shows it: "1,000 pairs", "without timeouts"."""
        if self.flag:
            return f"{'with' if value else 'without'} {self.format or self.name}"
        if self.format:
            return self.format.format(value)
        return f"{self.name} {value}" if self.choices else f"{value:,} {self.name}"


@dataclass(frozen=True)
class Cell:
    """One combination of parameter values of one suite; hashable."""

    suite: str
    items: tuple[tuple[str, object], ...]

    @property
    def params(self) -> dict:
        return dict(self.items)

    def get(self, name, default=None):
        return self.params.get(name, default)


@dataclass
class Sample:
    """What one run of a subject reported: its version and backend, and a value for each metric."""

    version: str
    backend: str
    values: dict[str, float] = field(default_factory=dict)
