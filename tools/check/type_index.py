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
                      r"[\w:][\w:<>,&*\[\] ]* [&*]?([a-z]\w*)\(")
HEADER = """\
# Index of types

The public types and functions, and the header of each. The header of a directory includes all
headers of the directory: `<tambour/http.h>`. `<tambour/tambour.h>` includes everything.

This page is generated: after a change of the public headers, run `tools/write-type-index`.
"""


@dataclass
class Entry:
    headers: set[str]
    text: str


@dataclass
class Namespace:
    types: dict[str, Entry] = field(default_factory=dict)
    functions: dict[str, Entry] = field(default_factory=dict)


def sentence_of(comment: list[str]) -> str:
    """The first sentence of a comment."""
    text = re.sub(r"\s+", " ", " ".join(line.removeprefix("///").strip() for line in comment))
    end = re.search(r"[.:](?: |$)", text.replace("e.g. ", "e.g.  "))
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
    scope: str | None = None
    comment: list[str] = []
    for number, line in enumerate(lines):
        if match := NAMESPACE.match(line):
            # A namespace of details inside another one ends with the same brace.
            name = match[1]
            scope = None if "detail" in name or not name.startswith("tambour") else name
            comment = []
        elif line.startswith("}  // namespace"):
            scope = "tambour" if line == "}  // namespace detail" and scope is None else None
            comment = []
        elif scope is None:
            continue
        elif line.startswith("///"):
            comment.append(line)
        elif TEMPLATE.match(line) or line.startswith("  requires"):
            continue
        else:
            here = found.setdefault(scope, Namespace())
            include = header.removeprefix("include/")
            if match := TYPE.match(line):
                if not (line.startswith(("class", "struct", "enum"))
                        and is_declared_in_advance(lines, number)):
                    here.types.setdefault(match[1], Entry({include}, sentence_of(comment)))
            elif match := FUNCTION.match(line):
                entry = here.functions.setdefault(match[1], Entry(set(), ""))
                entry.headers.add(include)
                # That of the first overload that has one.
                entry.text = entry.text or sentence_of(comment)
            if line and not line.startswith(("//", " ")):
                comment = []


def declared(tree: Tree) -> dict[str, Namespace]:
    """The public types and functions of the headers of this tree."""
    found: dict[str, Namespace] = {}
    for header in tree.under("include/tambour/", suffixes=(".h",)):
        if not header.startswith("include/tambour/detail/"):
            read_header(header, tree.lines(header), found)
    return found


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
            for entry, at in sorted(entries.items(), key=lambda item: item[0].lower()):
                links = ", ".join(f"[{header}](../include/{header})"
                                  for header in sorted(at.headers))
                text += f"| `{entry}{call}` | {links} | {at.text} |\n"
    return text
