"""Runs the project's checks: python3 tools/check [--root DIR] [--build DIR] [NAME...]

Each check is a module in this directory with a function run(tree) that yields faults. The exit
status is 0 if no check found a fault, 1 if a check found one, and 77 (skipped, for ctest) if no
check found a fault but one could not run because a tool is not installed.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

from tree import MissingTool, Tree

CHECKS = ["format", "style", "layers", "names", "links", "types", "headers", "comments",
          "shell", "findings"]


def run_check(name: str, tree: Tree) -> str:
    """Runs one check and prints its faults. Returns "passed", "failed" or "skipped"."""
    began = time.monotonic()
    try:
        faults = list(importlib.import_module(f"check_{name}").run(tree))
    except MissingTool as missing:
        print(f"{name:8}  SKIPPED  {missing}", flush=True)
        return "skipped"
    for fault in faults:
        print(fault)
    verdict = f"{len(faults)} faults" if faults else "ok"
    print(f"{name:8}  {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
    return "failed" if faults else "passed"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/check")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2],
                        help="the tree to check (default: this repository)")
    parser.add_argument("--build", type=Path, default=None,
                        help="directory of compile_commands.json (default: ROOT/build)")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"one of {', '.join(CHECKS)} (default: all)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in CHECKS]
    if unknown:
        parser.error(f"unknown check: {', '.join(unknown)}")
    root = arguments.root.resolve()
    tree = Tree(root, (arguments.build or root / "build").resolve())
    outcomes = [run_check(name, tree) for name in arguments.names or CHECKS]
    if "failed" in outcomes:
        return 1
    return 77 if "skipped" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
