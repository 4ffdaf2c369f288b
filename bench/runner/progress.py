"""Say where a run is: a bar on a terminal, a line now and then elsewhere.

No thread: the bar is redrawn from the launcher's tick, because a second thread would make the
fork of the children unsafe (see child.py).
"""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, ProgressColumn, TextColumn
from rich.text import Text

LINE_EVERY_S = 5.0


def clock(seconds: float) -> str:
    """Seconds as m:ss."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """Counts what is done, by the costs that the suites guess, and predicts the rest."""

    def __init__(self, console: Console, total: float) -> None:
        self._console = console
        self._total = max(total, 1e-9)
        self._done = 0.0
        self._began = time.monotonic()
        self.where = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    @property
    def fraction(self) -> float:
        return min(1.0, self._done / self._total)

    def eta(self) -> str:
        """What is left to wait, or nothing while there is no ground to guess on."""
        if self.fraction < 0.01:
            return ""
        spent = time.monotonic() - self._began
        return clock(spent * (1 - self.fraction) / self.fraction)

    def start(self, task, round_index: int, subject: str) -> None:
        """A spawn begins."""
        cell = task.suite.describe(task.cell.params)
        self.where = (f"{task.suite.name}: {cell}: "
                      f"round {round_index + 1}/{task.rounds}, {subject}")
        self.tick()

    def done(self, task) -> None:
        """A spawn has ended."""
        self._done += task.cost / task.rounds / len(task.subjects)

    def skip(self, task, rounds: int) -> None:
        """Rounds that will not be played."""
        self._done += task.cost / task.rounds * rounds

    def tick(self) -> None:
        """Called a few times a second while something runs."""

    def say(self, line: str) -> None:
        """A line that stays."""
        self._console.print(line, style="yellow", markup=False, highlight=False)


class Lines(Progress):
    """For logs and pipes: a line at most every few seconds."""

    _last = -LINE_EVERY_S

    def tick(self) -> None:
        now = time.monotonic()
        if now - self._last < LINE_EVERY_S:
            return
        self._last = now
        eta = self.eta()
        tail = f", {eta} left" if eta else ""
        self._console.print(f"{self.fraction:4.0%}  {self.where}{tail}", markup=False,
                            highlight=False, soft_wrap=True)


class _Eta(ProgressColumn):
    """The ETA from the owner's weights; rich's own would count spawns as equal."""

    def __init__(self, owner: "Terminal") -> None:
        super().__init__()
        self._owner = owner

    def render(self, task) -> Text:
        return Text(self._owner.eta(), style="cyan")


class Terminal(Progress):
    """For people: one line that is redrawn."""

    def __init__(self, console: Console, total: float) -> None:
        super().__init__(console, total)
        self._bar = Bar(BarColumn(24), TextColumn("{task.percentage:3.0f}%"), _Eta(self),
                        TextColumn("{task.description}", markup=False),
                        console=console, auto_refresh=False, transient=True)
        self._line = self._bar.add_task("", total=1.0)

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def tick(self) -> None:
        self._bar.update(self._line, completed=self.fraction, description=self.where)
        self._bar.refresh()


def make(console: Console, total: float) -> Progress:
    """The kind of progress that fits where the output goes."""
    return (Terminal if console.is_terminal else Lines)(console, total)
