"""Runs clang-tidy on src/ and on the headers of include/ that it includes (see .clang-tidy)."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, MissingTool, Tree, in_parallel, tool

FINDING = re.compile(r"^([^\s:][^:\n]*):(\d+):\d+: ((?:warning|error): .*)$", re.MULTILINE)


def sources(tree: Tree) -> list[str]:
    commands = tree.build / "compile_commands.json"
    if not commands.exists():
        raise MissingTool(f"{commands} does not exist (run make configured)")
    files = {Path(entry["directory"], entry["file"]).resolve()
             for entry in json.loads(commands.read_text())}
    return sorted(str(file) for file in files if file.is_relative_to(tree.root / "src"))


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
