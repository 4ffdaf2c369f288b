"""Checks that C++ files are formatted according to .clang-format; `make format` formats them."""

import re
import subprocess
from collections.abc import Iterator

from tree import Fault, Tree, in_parallel, tool

SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".cc", ".ipp")
FINDING = re.compile(r"^([^\s:][^:\n]*):(\d+):\d+: ", re.MULTILINE)

# Starting the program takes as long as formatting a file.
FILES_PER_RUN = 40


def run(tree: Tree) -> Iterator[Fault]:
    program = tool("clang-format-19")

    def check(paths: list[str]) -> list[Fault]:
        result = subprocess.run([program, "--dry-run", "--Werror", *paths], cwd=tree.root,
                                capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return []
        found = {(path, int(line)) for path, line in FINDING.findall(result.stderr)}
        if not found:
            return [Fault(paths[0], 1, f"clang-format failed\n{result.stderr.strip()}")]
        return [Fault(path, line, "not formatted (make format)") for path, line in sorted(found)]

    paths = tree.under("", suffixes=SUFFIXES)
    batches = [paths[first:first + FILES_PER_RUN]
               for first in range(0, len(paths), FILES_PER_RUN)]
    for faults in in_parallel(check, batches):
        yield from faults
