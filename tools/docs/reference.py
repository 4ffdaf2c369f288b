"""The API reference: a page for each public header, from its comments and declarations."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import AccessSpecifier, Cursor, CursorKind

RECORDS = (CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE)
FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD,
             CursorKind.CONSTRUCTOR, CursorKind.CONVERSION_FUNCTION)
VALUES = (CursorKind.VAR_DECL, CursorKind.FIELD_DECL, CursorKind.TYPE_ALIAS_DECL,
          CursorKind.TYPE_ALIAS_TEMPLATE_DECL, CursorKind.TYPEDEF_DECL, CursorKind.CONCEPT_DECL)
DECLARATIONS = (*RECORDS, *FUNCTIONS, *VALUES, CursorKind.ENUM_DECL)

# What a compiler or a range-based for calls, not a reader.
PROTOCOLS = re.compile(r"await_(ready|suspend|resume|transform)|return_(value|void)"
                       r"|get_return_object|(initial|final)_suspend|unhandled_exception"
                       r"|is_cancel_safe|promise_type|(value|error|difference)_type"
                       r"|iterator_(category|concept)|reference|pointer|is_error_code_enum")


@dataclass
class Group:
    """Declarations that share a comment: they follow each other without an empty line."""
    comment: str
    names: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    classes: list[Cursor] = field(default_factory=list)
    end: int = 0  # The last line.


class Header:
    """The lines of a header, and its declarations."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text()
        self.lines = self.text.split("\n")

    def opening(self) -> str:
        """The comment that the header begins with."""
        end = next((number for number, line in enumerate(self.lines)
                    if not line.startswith("//")), 0)
        return prose_of(self.lines[:end])

    def comment_before(self, line: int) -> str:
        """The comment that ends above `line`, which counts from 1."""
        end = begin = line - 1
        while begin > 0 and self.lines[begin - 1].lstrip().startswith("//"):
            begin -= 1
        return prose_of(self.lines[begin:end])

    def source(self, cursor: Cursor) -> str:
        """A declaration without its body, with the comments that end its lines."""
        first, last = cursor.extent.start, cursor.extent.end
        data = self.text.encode()
        text = data[first.offset:last.offset].decode().replace(" TAMBOUR_LIFETIME_BOUND", "")
        if cursor.kind in FUNCTIONS:
            text = without_body(text) + ";"
        elif not text.endswith(";"):
            text += ";"
        rest = self.lines[last.line - 1][last.column - 1:]
        trailing = re.search(r"///<.*", rest)
        return dedent(text, first.column) + (f"  {trailing[0]}" if trailing else "")


def prose_of(lines: list[str]) -> str:
    """The text of comment lines as Markdown. In comments, code is indented by two columns."""
    markdown: list[str] = []
    kind = ""  # Of the block: "code", "list" or "".
    for line in [re.sub(r"^\s*//+<? ?", "", line) for line in lines] + [""]:
        is_first = not markdown or not markdown[-1]
        if kind == "code" and line and not line.startswith("  "):
            markdown[-1:] = ["```", ""] if is_first else [markdown[-1], "```"]
            kind = ""
        if kind != "code" and line.startswith("- "):
            # Markdown needs an empty line before a list.
            markdown += [""] if kind != "list" and not is_first else []
            kind = "list"
        elif kind != "code" and line.startswith("  ") and is_first:
            markdown.append("```cpp")
            kind = "code"
        elif line and is_first and not line.startswith(" ") and kind == "list":
            kind = ""
        markdown.append(line[2:] if kind == "code" else escaped(line))
    if kind == "code":
        markdown[-1] = "```"
    return "\n".join(markdown).strip()


def escaped(line: str) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if index % 2 else part.replace("<", "&lt;").replace("*", "\\*")
                   for index, part in enumerate(parts))


def without_body(text: str) -> str:
    """A function without its body and without the initializers of a constructor."""
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        is_initializer = character == ":" and "::" not in text[index - 1:index + 2] \
            and re.search(r"(\)|noexcept|\]\])\s*$", text[:index])
        if depth == 0 and (character == "{" and "requires" not in text[:index].split("\n")[-1]
                           or is_initializer):
            return text[:index].rstrip()
    return text.rstrip("; \n")


def dedent(text: str, column: int) -> str:
    """Removes the indentation of a declaration that begins in `column`."""
    return re.sub(rf"\n {{0,{column - 1}}}", "\n", text)


def is_special(cursor: Cursor) -> bool:
    """Declarations that say nothing that their class does not say."""
    if cursor.kind == CursorKind.CONSTRUCTOR:
        return (cursor.is_copy_constructor() or cursor.is_move_constructor() or
                cursor.is_default_constructor() and not cursor.raw_comment)
    return cursor.spelling in ("operator=",) or bool(PROTOCOLS.fullmatch(cursor.spelling))


def groups_of(header: Header, scope: Cursor, path: str) -> list[Group]:
    """The public declarations of a namespace or class in the header at `path`."""
    groups: list[Group] = []
    for cursor in scope.get_children():
        if cursor.kind == CursorKind.NAMESPACE and not cursor.spelling.startswith("detail"):
            if cursor.location.file and cursor.location.file.name == path:
                groups += groups_of(header, cursor, path)
            continue
        if cursor.kind not in DECLARATIONS or is_special(cursor) or not cursor.spelling:
            continue
        if cursor.location.file is None or cursor.location.file.name != path:
            continue
        if cursor.access_specifier in (AccessSpecifier.PRIVATE, AccessSpecifier.PROTECTED):
            continue
        if cursor.kind in (*RECORDS, CursorKind.ENUM_DECL) and not cursor.is_definition():
            continue
        add(groups, header, cursor)
    return groups


def add(groups: list[Group], header: Header, cursor: Cursor) -> None:
    """Adds a declaration to the group before it, if it has no comment of its own."""
    line = cursor.extent.start.line
    comment = header.comment_before(line)
    is_type = cursor.kind in (*RECORDS, CursorKind.ENUM_DECL)
    follows = groups and not comment and not is_type and not groups[-1].classes and \
        groups[-1].end + 1 == line
    if not follows:
        groups.append(Group(comment))
    group = groups[-1]
    name = re.sub(r"<.*", "", cursor.spelling) if cursor.kind == CursorKind.CONSTRUCTOR \
        else cursor.spelling
    if name not in group.names:
        group.names.append(name)
    if is_type and cursor.kind != CursorKind.ENUM_DECL and not is_aggregate(cursor):
        group.classes.append(cursor)
    else:
        group.code.append(header.source(cursor))
    group.end = cursor.extent.end.line


def is_aggregate(cursor: Cursor) -> bool:
    """True if a class is best read as it is written: it has public fields and no functions."""
    kinds = [member.kind for member in cursor.get_children()
             if member.kind in DECLARATIONS and not member.is_default_method()]
    return CursorKind.FIELD_DECL in kinds and all(kind in VALUES for kind in kinds) and all(
        member.access_specifier == AccessSpecifier.PUBLIC for member in cursor.get_children()
        if member.kind == CursorKind.FIELD_DECL)


def rendered(header: Header, group: Group, path: str, level: int) -> str:
    """A group as Markdown; empty if it has nothing to read."""
    title = ", ".join(f"`{name}`" for name in group.names)
    text = f"\n{'#' * min(level, 4)} {title}\n\n"
    if group.code:
        text += "```cpp\n" + "\n".join(group.code) + "\n```\n\n"
    text += group.comment + "\n"
    for cursor in group.classes:
        members = [rendered(header, member, path, level + 1)
                   for member in groups_of(header, cursor, path)]
        if not group.comment and not any(members):
            return ""
        # Awaitables that functions return have no comment and no name that a reader needs.
        if not group.comment and level > 2:
            return ""
        text += "".join(members)
    return text


def page_of(root: Path, unit: Cursor, name: str) -> str:
    """The page of the header include/tambour/`name`."""
    path = str(root / "include/tambour" / name)
    header = Header(Path(path))
    text = f"# <tambour/{name}\\>\n\n{header.opening()}\n"
    for group in groups_of(header, unit, path):
        text += rendered(header, group, path, 2)
    return text
