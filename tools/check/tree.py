"""The files of the project, the faults that checks report, and helpers for running tools."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class MissingTool(Exception):
    """A check cannot run because a program that it needs is not installed."""


@dataclass(frozen=True)
class Fault:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        # The format that editors and CI systems recognize as a source location.
        return f"{self.path}:{self.line}: {self.message}"


class Tree:
    """A source directory and its build directory."""

    def __init__(self, root: Path, build: Path) -> None:
        self.root = root
        self.build = build
        self.paths = self._list()

    def _list(self) -> list[str]:
        """All files that are tracked or could be added: new files are checked before `git add`."""
        try:
            top = subprocess.run(["git", "-C", self.root, "rev-parse", "--show-toplevel"],
                                 capture_output=True, text=True, check=True).stdout.strip()
            if Path(top).resolve() == self.root:
                listed = subprocess.run(
                    ["git", "-C", self.root, "ls-files", "-z", "-co", "--exclude-standard"],
                    capture_output=True, text=True, check=True).stdout.split("\0")
                return sorted({path for path in listed if path and (self.root / path).is_file()})
        except (OSError, subprocess.CalledProcessError):
            pass  # Not a Git repository, for example a source archive: walk the directory.
        paths = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
            paths += [os.path.relpath(os.path.join(folder, name), self.root) for name in names]
        return sorted(paths)

    def under(self, *prefixes: str, suffixes: tuple[str, ...] = ("",)) -> list[str]:
        """The files that start with one of the prefixes and end in one of the suffixes."""
        return [path for path in self.paths
                if path.startswith(prefixes) and path.endswith(suffixes)]

    def lines(self, path: str) -> list[str]:
        text = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return text.splitlines()

    def includes(self, path: str) -> list[tuple[int, str, str]]:
        """(line number, '<' or '"', name) of each #include in the file."""
        found = []
        for number, line in enumerate(self.lines(path), start=1):
            match = INCLUDE.match(line)
            if match:
                found.append((number, match.group(1), match.group(2)))
        return found

    def first_line(self, path: str) -> str:
        with open(self.root / path, encoding="utf-8", errors="replace") as file:
            return file.readline()


def tool(*names: str) -> str:
    """Returns the first of the programs that is installed. Raises MissingTool if none is."""
    for name in names:
        if shutil.which(name):
            return name
    raise MissingTool(f"{names[0]} is not installed (run tools/bootstrap checks)")


def in_parallel(function, items):
    """Returns function(item) for each item, in order, using one thread per processor."""
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(function, items))
