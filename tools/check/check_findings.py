"""Runs clang-tidy on src/ and on the headers of include/ that it includes (see .clang-tidy).

The version of tools/check/requirements.txt is used if `make check` has installed it, otherwise
Debian's clang-tidy 19. Every unit parses the headers of the standard library. The sources of
several layers are therefore checked together, as one translation unit that includes them. If two
layers cannot be compiled together, for example because they have the same name in an anonymous
namespace, each of them is checked alone. Only misc-unused-alias-decls finds nothing in this way: it
ignores included files.
"""

import itertools
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, MissingTool, Tree, in_parallel, tool

FINDING = re.compile(r"^([^\s:][^:\n]*):(\d+):\d+: ((?:warning|error): .*)$", re.MULTILINE)

# The source that CMake compiles instead of the sources of a unity build.
UNITY = re.compile(r"unity_\d+_cxx\.cxx")
INCLUDED = re.compile(r'^#include "(.+)"$', re.MULTILINE)

# A unit that is much larger would run alone at the end.
SOURCES_PER_UNIT = 30


def commands_by_layer(tree: Tree) -> dict[str, dict[Path, dict]]:
    """The compile commands of the sources of each layer."""
    commands = tree.build / "compile_commands.json"
    if not commands.exists():
        raise MissingTool(f"{commands} does not exist (run make configured)")
    layers: dict[str, dict[Path, dict]] = {}
    for entry in json.loads(commands.read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        is_group = UNITY.fullmatch(source.name)
        for path in map(Path, INCLUDED.findall(source.read_text())) if is_group else [source]:
            if path.is_relative_to(tree.root / "src"):
                layer = path.relative_to(tree.root / "src").parts[0]
                layers.setdefault(layer, {})[path] = entry
    return layers


def groups(layers: dict[str, dict[Path, dict]]) -> list[list[str]]:
    """Divides the layers into groups of similar size; the largest group is the first."""
    count = max(1, sum(map(len, layers.values())) // SOURCES_PER_UNIT)
    divided: list[list[str]] = [[] for _ in range(count)]

    def size(group: list[str]) -> int:
        return sum(len(layers[layer]) for layer in group)

    for layer in sorted(layers, key=lambda layer: (-len(layers[layer]), layer)):
        min(divided, key=size).append(layer)
    return sorted(filter(None, divided), key=size, reverse=True)


class Units:
    """Writes translation units and their compile commands into build/findings."""

    def __init__(self, tree: Tree, layers: dict[str, dict[Path, dict]]) -> None:
        self.directory = tree.build / "findings"
        self.directory.mkdir(exist_ok=True)
        self.layers = layers

    def write(self, group: list[str]) -> Path:
        sources = [source for layer in group for source in sorted(self.layers[layer])]
        entry = self.layers[group[0]][sources[0]]
        name = "_".join(group)
        # clang-tidy reads one set of compile commands for each directory.
        (self.directory / name).mkdir(exist_ok=True)
        unit = self.directory / name / "unit.cpp"
        unit.write_text("".join(f'#include "{path}"  // NOLINT\n' for path in sources))
        options = dict.fromkeys(option for layer in group
                                for option in include_options(self.layers[layer]))
        arguments = [*shlex.split(entry["command"])[:-1], *options, str(unit)]
        commands = [{"directory": entry["directory"], "file": str(unit), "arguments": arguments}]
        (unit.parent / "compile_commands.json").write_text(json.dumps(commands))
        return unit


def include_options(commands: dict[Path, dict]) -> list[str]:
    """The definitions and directories of headers that a layer is compiled with."""
    command = shlex.split(next(iter(commands.values()))["command"])
    found = [option for option in command if re.match("-[DI].", option)]
    for option, value in zip(command, command[1:]):
        if option == "-isystem":
            found.append(f"-isystem{value}")
    return found


def run(tree: Tree) -> Iterator[Fault]:
    program = str(tree.build / "check-tools/bin/clang-tidy")
    if not os.access(program, os.X_OK):
        program = tool("clang-tidy-19")
    # clang-tidy reports a finding in a header once for each unit that includes the header.
    seen = set()

    units = Units(tree, commands_by_layer(tree))

    def check(group: list[str]) -> list[tuple[Path, subprocess.CompletedProcess]]:
        unit = units.write(group)
        result = subprocess.run(
            [program, "-p", unit.parent, "--quiet", "--warnings-as-errors=*",
             f"--config-file={tree.root / '.clang-tidy'}",
             f"--header-filter=^{re.escape(str(tree.root))}/(src|include)/", unit],
            cwd=tree.root, capture_output=True, text=True, check=False)
        if len(group) > 1 and "[clang-diagnostic-error" in result.stdout:
            return [pair for layer in group for pair in check([layer])]
        return [(unit, result)]

    for unit, result in itertools.chain(*in_parallel(check, groups(units.layers))):
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
