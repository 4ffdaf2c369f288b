"""Checks lengths of lines, files and directories, leftover markers, spaces, names, openings."""

import re
from collections import Counter
from collections.abc import Iterator

from tree import Fault, Tree

COLUMNS_MAX = 100
LINES_MAX = 500
FILES_MAX = 25

# Directories whose sources begin with a comment.
OPENED = ("src/", "include/", "compat/", "bindings/", "tests/", "examples/")

CPP = (".h", ".hpp", ".c", ".cpp", ".cc", ".ipp")
# Markdown is exempt from the line length: its tables cannot be wrapped.
CODE = CPP + (".py", ".sh", ".cmake", ".in", "CMakeLists.txt", "Makefile")

# Split strings, so that this file does not match itself.
LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
DEAD_INCLUDE = re.compile(r"^\s*(//(?!/)|/\*)\s*#\s*include\b")
# std::coroutine_handle is a value, so this does not match loops (`core->resume()`).
RESUME = re.compile(r"\.resume\(\)")
RESUMES = "src/task/task.cpp"
FILE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9]+)+|CMakeLists\.txt")


# GCC 12 evaluates the operand of such a co_await even if the condition before it has decided
# otherwise; see docs/tasks.md.
LOOP = re.compile(r"\bwhile ?\(")
AWAIT_LAST = re.compile(r"(&&|\|\|).*\bco_await\b", re.DOTALL)
AWAIT_IN_CHAIN = re.compile(r"(&&|\|\|).*\bco_await\b.*(&&|\|\|)", re.DOTALL)
AWAIT_WITH_CHOICE = re.compile(r"\bco_await\b.* \? | \? .*\bco_await\b", re.DOTALL)
# A time limit may be Duration::max(), the sum with a time then overflows.
OPTIONS = re.compile(r"^struct \w*(?:Options|Limits|Policy|Request|Faults) \{.*?^\};", re.M | re.S)
OPTION = re.compile(r"^\s+(?:Duration|std::optional<Duration>)\s+(\w+)\s*(?:=|\{|;)", re.M)
PATH_TO = r"\*?(?:[\w:.]|->|\(\))*"
TIME = r"\b(?:now|now_ns|clock_ns|wall_ns|monotonic_ns)\(\)"
TIME_SUM = re.compile(rf"{TIME}\s*\+|\+=?\s*{PATH_TO}{TIME}")
COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|R\"\((?:.|\n)*?\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'"
)


def is_code(tree: Tree, path: str) -> bool:
    if path.endswith(CODE):
        return True
    name = path.rsplit("/", 1)[-1]
    return "." not in name and tree.first_line(path).startswith("#!")


def check_lines(tree: Tree, path: str) -> Iterator[Fault]:
    for number, line in enumerate(tree.lines(path), start=1):
        if len(line) > COLUMNS_MAX:
            yield Fault(path, number, f"{len(line)} columns, limit {COLUMNS_MAX}")
        if line != line.rstrip():
            yield Fault(path, number, "trailing space")
        if "\t" in line and not path.endswith(("Makefile", "debian/rules")):
            yield Fault(path, number, "tab character")
        if match := LEFTOVER.search(line):
            yield Fault(path, number, f"{match.group()}: file an issue, or do the work")
        if path.endswith(CPP) and DEAD_INCLUDE.match(line):
            yield Fault(path, number, "commented-out #include")


def loop_condition(statement: str) -> str:
    """The text between the parentheses of `while`, or nothing."""
    found = LOOP.search(statement)
    if found is None:
        return ""
    depth = 1
    for at in range(found.end(), len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[at], 0)
        if depth == 0:
            return statement[found.end() : at]
    return ""


def check_awaits(tree: Tree, path: str) -> Iterator[Fault]:
    text = COMMENT_OR_STRING.sub("\"\"", "\n".join(tree.lines(path)))
    number = 1
    for statement in re.split(r"([;{}])", text):
        if "co_await" in statement:
            at = number + statement[: statement.index("co_await")].count("\n")
            if AWAIT_LAST.search(loop_condition(statement)):
                yield Fault(path, at, "co_await after && or || in the condition of a loop")
            elif AWAIT_IN_CHAIN.search(statement):
                yield Fault(path, at, "co_await between && or ||: make it the last operand")
            elif AWAIT_WITH_CHOICE.search(statement):
                yield Fault(path, at, "?: in a statement with co_await: name its value first")
        number += statement.count("\n")


def option_sum(tree: Tree) -> re.Pattern:
    """Matches sums and products of the durations in the options of public headers."""
    names = {name for path in tree.under("include/", suffixes=(".h",))
             for options in OPTIONS.findall("\n".join(tree.lines(path)))
             for name in OPTION.findall(options)}
    option = rf"(?:\.|->)(?:{'|'.join(sorted(names)) or '(?!)'})\b(?:\.count\(\)|\.value\(\))?"
    return re.compile(rf"{option}\s*[+*]|[+*]=?\s*{PATH_TO}{option}")


def check_durations(tree: Tree, path: str, options: re.Pattern) -> Iterator[Fault]:
    text = COMMENT_OR_STRING.sub(
        lambda found: "\n" * found.group().count("\n"), "\n".join(tree.lines(path)))
    for pattern in (TIME_SUM, options):
        for found in pattern.finditer(text):
            yield Fault(path, text.count("\n", 0, found.start()) + 1,
                        "the sum or product may overflow: base::saturating_add(), _multiply()")


def check_source(tree: Tree, path: str) -> Iterator[Fault]:
    """The rules for the library's own sources."""
    lines = tree.lines(path)
    if len(lines) > LINES_MAX:
        yield Fault(path, LINES_MAX, f"{len(lines)} lines, limit {LINES_MAX}: split the file")
    for number, line in enumerate(lines, start=1):
        if path != RESUMES and RESUME.search(line.partition("//")[0]):
            yield Fault(path, number, "resume coroutines with Resumption::run()")
    if path.endswith(".h") and "#pragma once" not in lines:
        yield Fault(path, 1, "#pragma once is missing")
    if not FILE_NAME.fullmatch(path.rsplit("/", 1)[-1]):
        yield Fault(path, 1, "file names must be snake_case")


def check_opening(tree: Tree, path: str) -> Iterator[Fault]:
    """A source file of a class that has several says which part of the class it is."""
    if not tree.first_line(path).startswith(("//", "/*")):
        yield Fault(path, 1, "the file must begin with a comment that states its purpose, or which "
                             "part of a class it has")


def check_test(tree: Tree, path: str) -> Iterator[Fault]:
    """Test files are compiled together, so each has a namespace of its own."""
    name = path.rsplit("/", 1)[-1].removesuffix(".cpp")
    if not any(line.startswith("namespace ") and line.endswith(f"::{name} {{")
               for line in tree.lines(path)):
        yield Fault(path, 1, f"the tests must be in namespace tambour::{name}")


def check_folders(tree: Tree) -> Iterator[Fault]:
    files = Counter(path.rpartition("/")[0]
                    for path in tree.under("src/", "compat/", "tests/", suffixes=CPP))
    for folder, count in sorted(files.items()):
        if count > FILES_MAX:
            yield Fault(folder, 1, f"{count} sources, limit {FILES_MAX}: divide the directory")


def run(tree: Tree) -> Iterator[Fault]:
    for path in tree.paths:
        if is_code(tree, path):
            yield from check_lines(tree, path)
        if path.endswith(CPP):
            yield from check_awaits(tree, path)
    options = option_sum(tree)
    for path in tree.under("src/", "include/", suffixes=CPP):
        yield from check_source(tree, path)
        yield from check_durations(tree, path, options)
    for path in tree.under(*OPENED, suffixes=CPP):
        yield from check_opening(tree, path)
    for path in tree.under("tests/", suffixes=("_test.cpp",)):
        yield from check_test(tree, path)
    yield from check_folders(tree)
