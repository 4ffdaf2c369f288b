"""Checks that each public header compiles on its own, included twice, without a warning, and gives
its declarations default visibility: the shared library hides all others."""

import os
import subprocess
from collections.abc import Iterator

from tree import Fault, Tree, in_parallel, tool

FLAGS = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


PUSH = "#pragma GCC visibility push(default)"
POP = "#pragma GCC visibility pop"


def visibility_fault(lines: list[str]) -> tuple[int, str] | None:
    """The line and text of the first fault of a header's visibility pragmas."""
    if not any(line.startswith("namespace ") for line in lines):
        return None
    for pragma in (PUSH, POP):
        if lines.count(pragma) != 1:
            return 1, f"must contain `{pragma}` once: before the first and after the last namespace"
    push, pop = lines.index(PUSH), lines.index(POP)
    for number, line in enumerate(lines):
        if line.startswith("#include") and number > push:
            return number + 1, "a header is included after the visibility was set"
        if line.startswith("namespace ") and not push < number < pop:
            return number + 1, "a namespace is not between the visibility pragmas"
    return None


def run(tree: Tree) -> Iterator[Fault]:
    compiler = tool(os.environ.get("CXX") or "c++")

    def compile_alone(header: str) -> subprocess.CompletedProcess:
        # The second include fails if `#pragma once` is missing.
        source = f"#include <{header.removeprefix('include/')}>\n" * 2
        return subprocess.run([compiler, *FLAGS, "-I", tree.root / "include", "-x", "c++", "-"],
                              input=source, capture_output=True, text=True, check=False)

    headers = tree.under("include/tambour/", suffixes=(".h",))
    for header in headers:
        fault = visibility_fault((tree.root / header).read_text().splitlines())
        if fault:
            yield Fault(header, *fault)
    for header, result in zip(headers, in_parallel(compile_alone, headers)):
        if result.returncode != 0:
            yield Fault(header, 1, f"does not compile on its own\n{result.stderr.rstrip()}")
