"""Runs clang-tidy on src/ and on the headers of include/ that it includes (see .clang-tidy)."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, MissingTool, Tree, in_parallel, tool

FINDING = re.compile(r"^([^\s:][^:\n]*):(\d+):\d+: ((?:warning|error): .*)$", re.MULTILINE)

# A change of these can make a finding in any source.
CONCERN_ALL = {".clang-tidy", "tools/check/check_findings.py"}


def sources(tree: Tree) -> list[str]:
    commands = tree.build / "compile_commands.json"
    if not commands.exists():
        raise MissingTool(f"{commands} does not exist (run make configured)")
    files = {Path(entry["directory"], entry["file"]).resolve()
             for entry in json.loads(commands.read_text())}
    sources = sorted(str(file) for file in files if file.is_relative_to(tree.root / "src"))
    changed = tree.changed()
    if changed is None or not changed.isdisjoint(CONCERN_ALL):
        return sources
    concerned = tree.dependents(changed)
    return [source for source in sources if os.path.relpath(source, tree.root) in concerned]


def run(tree: Tree) -> Iterator[Fault]:
    program = tool("clang-tidy-19")
    # clang-tidy reports a finding in a header once for each source that includes the header.
    seen = set()

    def check(source: str) -> tuple[str, subprocess.CompletedProcess]:
        return source, subprocess.run(
            [program, "-p", tree.build, "--quiet", "--warnings-as-errors=*",
             f"--header-filter=^{re.escape(str(tree.root))}/(src|include)/", source],
            cwd=tree.root, capture_output=True, text=True, check=False)

    for source, result in in_parallel(check, sources(tree)):
        found = FINDING.findall(result.stdout)
        for path, line, message in found:
            relative = path.removeprefix(f"{tree.root}/")
            fault = Fault(relative, int(line), message.replace(",-warnings-as-errors", ""))
            if fault not in seen:
                seen.add(fault)
                yield fault
        if result.returncode != 0 and not found:
            yield Fault(source, 1, f"clang-tidy failed\n{(result.stdout + result.stderr).strip()}")
