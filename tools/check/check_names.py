"""Checks where public headers and their declarations are, and names that cannot be read alone.

A public header is in a directory of include/tambour/; beside it is only the umbrella header of the
directory. What a public header declares is in the namespace of its directory (`dns`, `http`, `sim`,
`tls`, else `tambour`), or in a namespace `detail` if users must not name it.
"""

import re
from collections.abc import Iterator

from tree import Fault, Tree

# Directories of include/tambour with a namespace of their own.
NAMED = ("adapters", "dns", "fs", "http", "inspector", "metrics", "sim", "tls")
PUBLIC = {("tambour",), ("std",)} | {("tambour", name) for name in NAMED}

NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+) \{")
DEFINITION = re.compile(
    r"^(?:class|struct|union|enum class|enum|concept|using)\s+(?:\[\[.*?\]\]\s*)?(\w+)\b(?!.*;$)|"
    r"^using (\w+) =")

CPP = (".h", ".hpp", ".cpp", ".cc")
# As words of a sentence they need one; as names they say nothing.
PRONOUN = re.compile(
    r"(?<![\w.:])(?<!->)(each|made|what|how|own|which|most|its_name)\b(?!\s*::)")
NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(\w*)\((?:.|\n)*?\)\1\"|"
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S)


def code(tree: Tree, path: str) -> list[str]:
    """The lines of a file without comments and strings."""
    text = NOT_CODE.sub(lambda found: "\n" * found.group().count("\n"),
                        "\n".join(tree.lines(path)))
    return text.split("\n")


def check_place(tree: Tree, path: str, directories: set[str]) -> Iterator[Fault]:
    name = path.removeprefix("include/tambour/")
    if "/" in name:
        return
    stem = name.removesuffix(".h")
    if stem != "tambour" and stem not in directories:
        yield Fault(path, 1, "a public header must be in a directory of include/tambour/")
    elif any(line and not line.startswith("#") for line in code(tree, path)):
        yield Fault(path, 1, "an umbrella header may only include")


def check_namespaces(tree: Tree, path: str) -> Iterator[Fault]:
    directory = path.removeprefix("include/tambour/").split("/")[0]
    home = ("tambour", directory) if directory in NAMED else ("tambour",)
    open_namespaces: list[tuple[str, ...]] = []
    for number, line in enumerate(code(tree, path), start=1):
        if found := NAMESPACE.match(line):
            open_namespaces.append(tuple(found.group(1).split("::")))
            whole = sum(open_namespaces, ())
            if "detail" not in whole and whole not in PUBLIC:
                yield Fault(path, number, f"namespace {'::'.join(whole)} is internal: it must be "
                                          "in a namespace `detail`")
            if line.rstrip().endswith("}"):
                open_namespaces.pop()
        elif line.startswith("}") and open_namespaces and not line.startswith("};"):
            if line.rstrip() == "}":
                # The end of a function, or of a namespace: comments are not seen here.
                if tree.lines(path)[number - 1].startswith("}  // namespace") or \
                        closes_namespace(tree, path, number):
                    open_namespaces.pop()
        elif found := DEFINITION.match(line):
            whole = sum(open_namespaces, ())
            name = found.group(1) or found.group(2)
            if whole and "detail" not in whole and whole != home and whole[:1] != ("std",):
                yield Fault(path, number, f"{name} must be in namespace {'::'.join(home)}")


def closes_namespace(tree: Tree, path: str, number: int) -> bool:
    """Whether the brace at the beginning of a line ends a namespace of forward declarations."""
    lines = tree.lines(path)
    for line in reversed(lines[:number - 1]):
        if line.startswith("namespace "):
            return True
        if line and not re.match(r"(class|struct|enum|template|//)[^{]*$|using namespace", line):
            return False
    return False


def check_pronouns(tree: Tree, path: str) -> Iterator[Fault]:
    for number, line in enumerate(code(tree, path), start=1):
        for found in PRONOUN.finditer(line):
            if found.group(1) == "what" and line[found.end():].startswith("("):
                continue  # The function of std::exception.
            yield Fault(path, number, f"`{found.group(1)}` cannot be read alone: name what it is")


def run(tree: Tree) -> Iterator[Fault]:
    headers = tree.under("include/tambour/", suffixes=(".h",))
    directories = {path.split("/")[2] for path in headers if path.count("/") > 2}
    for path in headers:
        yield from check_place(tree, path, directories)
        yield from check_namespaces(tree, path)
    for path in tree.under("src/", "include/", "compat/", "tests/", "bench/", "examples/",
                           "bindings/", suffixes=CPP):
        yield from check_pronouns(tree, path)
