"""Shows the progress of a run: a bar on a terminal, otherwise a line at intervals.

The bar is redrawn from the launcher's tick. There is no thread for it, because forking the children
is safe only in a process with a single thread (see child.py).
"""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, ProgressColumn, TextColumn
from rich.text import Text

from .plan import Task

LINE_EVERY_S = 30.0


def clock(seconds: float) -> str:
    """Seconds as m:ss."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """Adds up the estimated cost of what is done, and predicts the remaining time from it."""

    def __init__(self, console: Console, total: float) -> None:
        self._console = console
        self._total = max(total, 1e-9)
        self._done = 0.0
        self._began = time.monotonic()
        self.status = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    @property
    def fraction(self) -> float:
        return min(1.0, self._done / self._total)

    def remaining(self) -> str:
        """The remaining time, or an empty string while there is too little to predict it from."""
        if self.fraction < 0.01:
            return ""
        spent = time.monotonic() - self._began
        return clock(spent * (1 - self.fraction) / self.fraction)

    def start(self, task: Task, round_index: int, subject: str) -> None:
        """A run of a subject begins."""
        cell = task.suite.describe(task.cell.params)
        self.status = (f"round {round_index + 1}/{task.rounds}, "
                       f"{task.suite.name}: {cell}: {subject}")
        self.tick()

    def done(self, task: Task) -> None:
        """A run of a subject has ended."""
        self._done += task.cost

    def skip(self, task: Task) -> None:
        """A round of this task will not run."""
        self._done += task.cost * len(task.subjects)

    def tick(self) -> None:
        """Called a few times a second while a subject runs."""

    def say(self, line: str) -> None:
        """Prints a line that stays."""
        self._console.print(line, style="yellow", markup=False, highlight=False)


class Lines(Progress):
    """For logs and pipes: a line at intervals."""

    _last = -LINE_EVERY_S

    def tick(self) -> None:
        now = time.monotonic()
        if now - self._last < LINE_EVERY_S:
            return
        self._last = now
        remaining = self.remaining()
        tail = f", {remaining} left" if remaining else ""
        self._console.print(f"{self.fraction:4.0%}  {self.status}{tail}", markup=False,
                            highlight=False, soft_wrap=True)


class _Remaining(ProgressColumn):
    """The remaining time by estimated cost; rich's own column would count all runs as equal."""

    def __init__(self, owner: "Terminal") -> None:
        super().__init__()
        self._owner = owner

    def render(self, task) -> Text:
        return Text(self._owner.remaining(), style="cyan")


class Terminal(Progress):
    """For a terminal: one line that is redrawn."""

    def __init__(self, console: Console, total: float) -> None:
        super().__init__(console, total)
        self._bar = Bar(BarColumn(24), TextColumn("{task.percentage:3.0f}%"), _Remaining(self),
                        TextColumn("{task.description}", markup=False),
                        console=console, auto_refresh=False, transient=True)
        self._line = self._bar.add_task("", total=1.0)

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def tick(self) -> None:
        self._bar.update(self._line, completed=self.fraction, description=self.status)
        self._bar.refresh()


def make(console: Console, total: float) -> Progress:
    """The kind of progress display that fits the console."""
    return (Terminal if console.is_terminal else Lines)(console, total)
