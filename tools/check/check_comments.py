"""Checks that a comment describes each symbol of the public headers. It is one of these:

- the comment above the declaration, or at the end of its last line (`///<`);
- for declarations that follow each other without an empty line, the comment of one before them;
- for types and functions of a namespace, the comment that the header begins with, if it names them.

The names of fields and enumerators, of operators, and of what every container has describe
themselves; so do constructors that copy, move or have no parameters. Awaitables that are nested in
the class whose functions return them are described by these functions.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from check_headers import flags_of
from tree import Fault, MissingTool, Tree

try:
    from clang.cindex import AccessSpecifier, Cursor, CursorKind
    from header_unit import parse
    RECORDS = (CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE)
    MEMBERS = (CursorKind.FIELD_DECL, CursorKind.ENUM_CONSTANT_DECL)
    DECLARATIONS = (*RECORDS, CursorKind.ENUM_DECL, CursorKind.FUNCTION_DECL,
                    CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR,
                    CursorKind.CONVERSION_FUNCTION, CursorKind.VAR_DECL, CursorKind.TYPEDEF_DECL,
                    CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPE_ALIAS_TEMPLATE_DECL,
                    CursorKind.CONCEPT_DECL)
except ImportError:
    parse = None

# What a compiler, the standard library or a range-based for calls, and the names of containers.
KNOWN = re.compile(r"operator\W.*|operator bool|operator co_await|begin|end|empty|size|swap"
                   r"|await_(ready|suspend|resume|transform)|return_(value|void)"
                   r"|get_return_object|(initial|final)_suspend|unhandled_exception"
                   r"|is_cancel_safe|promise_type|(value|error|difference)_type"
                   r"|iterator_(category|concept)|reference|pointer|hash|make_error_code"
                   r"|is_error_code_enum|type")

class Comments:
    """The comments of the headers of a tree."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}

    def of(self, path: str) -> list[str]:
        if path not in self.lines:
            self.lines[path] = Path(path).read_text(encoding="utf-8").split("\n")
        return self.lines[path]

    def are_at(self, cursor: Cursor) -> bool:
        """True if a comment is above a declaration or at its end."""
        lines = self.of(cursor.location.file.name)
        if any(line.rstrip("; ").endswith((" override", " final")) or " override {" in line
               for line in lines[cursor.extent.start.line - 1:cursor.extent.end.line]):
            return True  # The class that declares it first describes it.
        above = cursor.extent.start.line - 2
        while lines[above].lstrip().startswith("// NOLINT"):
            above -= 1
        return "///<" in lines[cursor.extent.end.line - 1] or \
            lines[above].lstrip().startswith("//")

    def name(self, cursor: Cursor) -> bool:
        """True if the comment that the header begins with names the declaration."""
        opening = []
        for line in self.of(cursor.location.file.name):
            if not line.startswith("//"):
                break
            opening.append(line)
        name = re.escape(cursor.spelling.split("<")[0])
        return bool(re.search(rf"\b{name}\b", " ".join(opening)))


def is_awaitable(cursor: Cursor) -> bool:
    """True for a class that a function returns to be awaited."""
    return cursor.kind in RECORDS and any(
        child.spelling in ("await_ready", "await_resume") or
        child.kind == CursorKind.CXX_BASE_SPECIFIER and "detail::" in child.spelling
        for child in cursor.get_children())


def is_known(cursor: Cursor, scope: Cursor) -> bool:
    """True for what its name, its kind or its class describes."""
    if cursor.kind in MEMBERS or KNOWN.fullmatch(cursor.spelling):
        return True
    if scope.kind in RECORDS and cursor.kind == CursorKind.VAR_DECL:
        return True
    if cursor.semantic_parent.kind in RECORDS and is_awaitable(cursor):
        return True
    if cursor.kind == CursorKind.CONSTRUCTOR:
        return cursor.is_default_constructor() or cursor.is_copy_constructor() or \
            cursor.is_move_constructor()
    # Definitions outside of the class that declares them, and specializations.
    return cursor.kind not in RECORDS and cursor.semantic_parent != cursor.lexical_parent or \
        cursor.kind in RECORDS and not cursor.is_definition()


def undocumented(scope: Cursor, folder: str, comments: Comments | None = None) -> Iterator[Cursor]:
    """The public declarations of a namespace or class that no comment describes, of all headers in
    `folder`."""
    comments = comments or Comments()
    group = (0, False)  # Its last line, and whether it has a comment.
    for cursor in scope.get_children():
        file = cursor.location.file
        if file is None or not file.name.startswith(folder) or "/detail/" in file.name:
            continue
        if cursor.kind == CursorKind.NAMESPACE:
            if cursor.spelling not in ("detail", ""):
                yield from undocumented(cursor, folder, comments)
            continue
        if cursor.kind not in DECLARATIONS:
            continue
        lines = comments.of(file.name)[group[0] - 1:cursor.extent.start.line - 1]
        follows = group[0] > 0 and "" not in lines  # libclang ends functions before their bodies.
        has_comment = comments.are_at(cursor) or follows and group[1]
        group = (cursor.extent.end.line, has_comment)
        if cursor.access_specifier in (AccessSpecifier.PRIVATE, AccessSpecifier.PROTECTED):
            continue
        if is_known(cursor, scope):
            continue
        if not has_comment and (scope.kind in RECORDS or not comments.name(cursor)):
            yield cursor
        if cursor.kind in RECORDS:
            yield from undocumented(cursor, folder, comments)


def fault_of(root: Path, cursor: Cursor) -> Fault:
    path = Path(cursor.location.file.name).relative_to(root).as_posix()
    return Fault(path, cursor.location.line, f"{cursor.spelling} has no comment")


def run(tree: Tree) -> Iterator[Fault]:
    if parse is None:
        raise MissingTool("python3-clang-19 is not installed (run tools/bootstrap checks)")
    folder = "include/tambour/"
    headers = [path.removeprefix(folder) for path in tree.under(folder, suffixes=(".h",))]
    headers = [header for header in headers if not header.startswith("detail/")]
    # As in check_headers, adapters of libraries that are not installed are left out.
    adapters = [header for header in headers if header.startswith("adapters/")
                and flags_of(folder + header) is not None]
    others = [header for header in headers if not header.startswith("adapters/")]
    for part, place in ((others, folder), (adapters, folder + "adapters/")):
        if not part:
            continue
        unit = parse(tree.root, *part)
        if unit is None:
            yield Fault(place, 1, "the headers do not compile: run tools/check headers")
            continue
        for cursor in undocumented(unit, f"{tree.root}/{place}"):
            yield fault_of(tree.root, cursor)
