"""Checks that each public header compiles on its own, included twice, without a warning."""

import os
import subprocess
from collections.abc import Iterator

from tree import Fault, Tree, in_parallel, tool

FLAGS = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def run(tree: Tree) -> Iterator[Fault]:
    compiler = tool(os.environ.get("CXX") or "c++")

    def compile_alone(header: str) -> subprocess.CompletedProcess:
        # The second include fails if `#pragma once` is missing.
        source = f"#include <{header.removeprefix('include/')}>\n" * 2
        return subprocess.run([compiler, *FLAGS, "-I", tree.root / "include", "-x", "c++", "-"],
                              input=source, capture_output=True, text=True, check=False)

    headers = tree.under("include/tambour/", suffixes=(".h",))
    for header, result in zip(headers, in_parallel(compile_alone, headers)):
        if result.returncode != 0:
            yield Fault(header, 1, f"does not compile on its own\n{result.stderr.rstrip()}")
