"""Runs clang-tidy on src/ and on the headers of include/ that it includes (see .clang-tidy).

Most of the time of a run goes into the headers of the standard library. The sources of a directory
are therefore checked together, as one translation unit that includes them. Only
misc-unused-alias-decls then finds nothing: it ignores included files.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, MissingTool, Tree, in_parallel, tool

FINDING = re.compile(r"^([^\s:][^:\n]*):(\d+):\d+: ((?:warning|error): .*)$", re.MULTILINE)


def units(tree: Tree) -> list[Path]:
    """Writes a translation unit for each directory, and their compile commands; returns them."""
    commands = tree.build / "compile_commands.json"
    if not commands.exists():
        raise MissingTool(f"{commands} does not exist (run make configured)")
    by_directory: dict[Path, dict[Path, dict]] = {}
    for entry in json.loads(commands.read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        if source.is_relative_to(tree.root / "src"):
            by_directory.setdefault(source.parent, {})[source] = entry
    directory = tree.build / "findings"
    directory.mkdir(exist_ok=True)
    written, entries = [], []
    # The largest first, so that no long run is left for the end.
    for sources in sorted(by_directory.values(), key=len, reverse=True):
        source, entry = next(iter(sources.items()))
        unit = directory / f"{source.parent.relative_to(tree.root / 'src')}.cpp".replace("/", "_")
        unit.write_text("".join(f'#include "{path}"  // NOLINT\n' for path in sorted(sources)))
        options = shlex.split(entry["command"])[:-1]
        entries.append({"directory": entry["directory"], "file": str(unit),
                        "arguments": [*options, str(unit)]})
        written.append(unit)
    (directory / "compile_commands.json").write_text(json.dumps(entries))
    return written


def run(tree: Tree) -> Iterator[Fault]:
    program = tool("clang-tidy-19")
    # clang-tidy reports a finding in a header once for each unit that includes the header.
    seen = set()

    def check(unit: Path) -> tuple[Path, subprocess.CompletedProcess]:
        return unit, subprocess.run(
            [program, "-p", unit.parent, "--quiet", "--warnings-as-errors=*",
             f"--config-file={tree.root / '.clang-tidy'}",
             f"--header-filter=^{re.escape(str(tree.root))}/(src|include)/", unit],
            cwd=tree.root, capture_output=True, text=True, check=False)

    for unit, result in in_parallel(check, units(tree)):
        found = FINDING.findall(result.stdout)
        for path, line, message in found:
            fault = Fault(os.path.relpath(path, tree.root), int(line),
                          message.replace(",-warnings-as-errors", ""))
            if fault not in seen:
                seen.add(fault)
                yield fault
        if result.returncode != 0 and not found:
            yield Fault(str(unit), 1,
                        f"clang-tidy failed\n{(result.stdout + result.stderr).strip()}")
