"""Checks that C++ files are formatted according to .clang-format; `make format` formats them."""

import re
import subprocess
from collections.abc import Iterator

from tree import Fault, Tree, in_parallel, tool

SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".cc", ".ipp")


def run(tree: Tree) -> Iterator[Fault]:
    program = tool("clang-format-19")

    def check(path: str) -> list[Fault]:
        result = subprocess.run([program, "--dry-run", "--Werror", path], cwd=tree.root,
                                capture_output=True, text=True, check=False)
        lines = sorted({int(line) for line in
                        re.findall(rf"^{re.escape(path)}:(\d+):", result.stderr, re.MULTILINE)})
        if result.returncode == 0:
            return []
        if not lines:
            return [Fault(path, 1, f"clang-format failed\n{result.stderr.strip()}")]
        return [Fault(path, line, "not formatted (make format)") for line in lines]

    for faults in in_parallel(check, tree.under("", suffixes=SUFFIXES)):
        yield from faults
