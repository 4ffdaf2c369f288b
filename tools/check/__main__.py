"""Runs the project's checks: python3 tools/check [--root DIR] [--build DIR] [NAME...]

Each check is a module beside this one with a function run(tree) that yields faults. The exit status
is 0 where nothing was found, 1 where something was, and 77 (skipped, for ctest) where nothing was
found but a check could not run for want of a tool.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

from tree import MissingTool, Tree

CHECKS = ["format", "style", "layers", "headers", "shell", "findings"]


def run_check(name: str, tree: Tree) -> str:
    """Runs one check and prints what it found; returns "passed", "failed" or "skipped"."""
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
                        help="the tree to check (this one)")
    parser.add_argument("--build", type=Path, default=None,
                        help="where compile_commands.json is (ROOT/build)")
    parser.add_argument("--since", metavar="COMMIT",
                        help="findings: only sources that the changes since then can concern")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"of {', '.join(CHECKS)} (all)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in CHECKS]
    if unknown:
        parser.error(f"unknown check: {', '.join(unknown)}")
    root = arguments.root.resolve()
    tree = Tree(root, (arguments.build or root / "build").resolve(), arguments.since)
    outcomes = [run_check(name, tree) for name in arguments.names or CHECKS]
    if "failed" in outcomes:
        return 1
    return 77 if "skipped" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
