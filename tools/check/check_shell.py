"""Runs shellcheck on the shell scripts."""

import re
import subprocess
from collections.abc import Iterator

from tree import Fault, Tree, in_parallel, tool

SHEBANG = re.compile(r"#!.*\b(bash|sh)\b")


def run(tree: Tree) -> Iterator[Fault]:
    program = tool("shellcheck")

    def check(path: str) -> list[Fault]:
        result = subprocess.run([program, "--format=gcc", path], cwd=tree.root,
                                capture_output=True, text=True, check=False)
        found = re.findall(r"^[^:]+:(\d+):\d+: (.*)$", result.stdout, re.MULTILINE)
        return [Fault(path, int(line), message) for line, message in found]

    scripts = [path for path in tree.paths
               if path.endswith(".sh")
               or ("." not in path.rsplit("/", 1)[-1] and SHEBANG.match(tree.first_line(path)))]
    for faults in in_parallel(check, scripts):
        yield from faults
