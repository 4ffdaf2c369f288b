"""The index of the public types and functions: docs/types.md, generated from the headers."""

import re
from dataclasses import dataclass, field

from tree import Tree

PAGE = "docs/types.md"
MODULE = "include/tambour/tambour.cppm"
NAMESPACE = re.compile(r"namespace ([\w:]+) \{$")
TYPE = re.compile(r"(?:class|struct|enum class|using|concept)(?: \[\[.*?\]\])? (\w+)\b")
TEMPLATE = re.compile(r"(template <|requires\b)")
FUNCTION = re.compile(r"(?:\[\[.*?\]\] )?(?:inline |constexpr |extern )*"
                      r"(?!using|return|namespace|class|struct|enum|concept|template|requires)"
                      r"[\w:][\w:<>,&*\[\]().\x20]*? [&*]?([a-z]\w*)\(")
QUOTED = re.compile(r"\([^()]*\)|\"[^\"]*\"|`[^`]*`")
HEADER = """\
# Index of types

The public types and functions, and the header of each. The header of a directory includes all
headers of the directory: `<tambour/http.h>`. `<tambour/tambour.h>` includes everything.

This page is generated: after a change of the public headers, run `tools/write-type-index`.
"""


@dataclass
class Namespace:
    """The descriptions of what a namespace declares, by name and header."""
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    functions: dict[str, dict[str, str]] = field(default_factory=dict)


def sentence_of(comment: list[str]) -> str:
    """The first sentence of a comment, which ends before a colon, too."""
    text = re.sub(r"\s+", " ", " ".join(line.removeprefix("///").strip() for line in comment))
    # Without the ends of sentences in parentheses and quotations.
    plain = QUOTED.sub(lambda match: "x" * len(match[0]), text).replace("e.g. ", "e.g.  ")
    end = re.search(r"[.:](?: |$)", plain)
    text = text[:end.start()] if end else text
    return text.replace("|", "\\|").strip()


def is_declared_in_advance(lines: list[str], number: int) -> bool:
    """True if the type on this line is only declared: `class Connection;`."""
    for line in lines[number:number + 6]:
        if "{" in line or "=" in line:
            return False
        if line.rstrip().endswith(";"):
            return True
    return False


def read_header(header: str, lines: list[str], found: dict[str, Namespace]) -> None:
    """Adds what a header declares. The declarations of a namespace are not indented."""
    scopes: list[tuple[str, int]] = []  # The name, and the number of its first line.
    comment: list[str] = []
    for number, line in enumerate(lines):
        if match := NAMESPACE.match(line):
            scopes.append((match[1], number))
            comment = []
        # A namespace of one line has no comment at its end.
        elif line.startswith("}  // namespace") or (
                line == "}" and scopes and scopes[-1][1] == number - 2):
            scopes.pop()
            comment = []
        elif line.startswith("///"):
            comment.append(line)
        elif not (TEMPLATE.match(line) or line.startswith("  requires")):
            scope = "::".join(name for name, _ in scopes)
            if scope.startswith("tambour") and "detail" not in scope:
                read_declaration(header, lines, number, sentence_of(comment),
                                 found.setdefault(scope, Namespace()))
            if line and not line.startswith(("//", " ")):
                comment = []


def read_declaration(header: str, lines: list[str], number: int, text: str,
                     found: Namespace) -> None:
    """Adds what the line declares, if it declares anything."""
    line = lines[number]
    include = header.removeprefix("include/")
    if match := TYPE.match(line):
        if not (line.startswith(("class", "struct", "enum"))
                and is_declared_in_advance(lines, number)):
            found.types.setdefault(match[1], {}).setdefault(include, text)
    elif match := FUNCTION.match(line):
        # The first overload that has a description.
        headers = found.functions.setdefault(match[1], {})
        headers[include] = headers.get(include) or text


def declared(tree: Tree) -> dict[str, Namespace]:
    """The public types and functions of the headers of this tree."""
    found: dict[str, Namespace] = {}
    for header in tree.under("include/tambour/", suffixes=(".h",)):
        if not header.startswith("include/tambour/detail/"):
            read_header(header, tree.lines(header), found)
    return {name: scope for name, scope in found.items() if scope.types or scope.functions}


def text_of(tree: Tree) -> str:
    """The page, as it must be for the headers of this tree."""
    found = declared(tree)
    text = HEADER
    for name in sorted(found):
        text += f"\n## {name}\n"
        for kind, entries, call in (("type", found[name].types, ""),
                                    ("function", found[name].functions, "()")):
            if entries:
                text += f"\n| {kind} | header | |\n|---|---|---|\n"
            for entry, headers in sorted(entries.items(), key=lambda item: item[0].lower()):
                for header, description in sorted(headers.items()):
                    text += (f"| `{entry}{call}` | [{header}](../include/{header}) | "
                             f"{description} |\n")
    return text
