"""The files of the project, as the checks see them."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class MissingTool(Exception):
    """A check cannot run because a program it needs is not installed."""


@dataclass(frozen=True)
class Fault:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        # The form that editors and CI know how to jump to.
        return f"{self.path}:{self.line}: {self.message}"


class Tree:
    """A directory, and the directory it was built in."""

    def __init__(self, root: Path, build: Path) -> None:
        self.root = root
        self.build = build
        self.paths = self._list()

    def _list(self) -> list[str]:
        """All files that are or could be committed: new files are checked before they are added."""
        try:
            top = subprocess.run(["git", "-C", self.root, "rev-parse", "--show-toplevel"],
                                 capture_output=True, text=True, check=True).stdout.strip()
            if Path(top).resolve() == self.root:
                listed = subprocess.run(
                    ["git", "-C", self.root, "ls-files", "-z", "-co", "--exclude-standard"],
                    capture_output=True, text=True, check=True).stdout.split("\0")
                return sorted({path for path in listed if path and (self.root / path).is_file()})
        except (OSError, subprocess.CalledProcessError):
            pass  # A source archive is checked too, by walking it.
        paths = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
            paths += [os.path.relpath(os.path.join(folder, name), self.root) for name in names]
        return sorted(paths)

    def under(self, *prefixes: str, suffixes: tuple[str, ...] = ("",)) -> list[str]:
        """The files below any of the prefixes that end in one of the suffixes."""
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
    """The first of the programs that is installed."""
    for name in names:
        if shutil.which(name):
            return name
    raise MissingTool(f"{names[0]} is not installed (tools/bootstrap checks)")


def in_parallel(function, items):
    """The results of function(item), in the order of items, one thread a processor."""
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(function, items))
