"""Compiles the C++ snippets of the documents: every block ```cpp of docs/ and README.md, as it is
written, in one translation unit for each compiler.

A block is a program if it has a main(). Otherwise its functions and classes are compiled as
declarations, and its other lines as the body of a coroutine. The names that a block uses without
declaring them come from tests/tools/snippets/common.h, or from tests/tools/snippets/PAGE.h with "_"
in place of "-", which is compiled in a namespace of the page and may declare a name again. A line
`// parameter: TYPE NAME` of PAGE.h gives the bodies a parameter, which lambdas can capture. A line
`// include: <HEADER>` includes a header before everything else.

A block after a line `<!-- not compiled: REASON -->` is not compiled: code of other libraries, for
example. Blocks that other tests compare with compiled programs need not be marked: COMPARED.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROLOGUES = ROOT / "tests/tools/snippets"
# test_documents.py, test_mistakes.py and tests/package/check_tutorial find the blocks of these
# pages in programs.
COMPARED = {"README.md", "docs/client-libraries.md", "docs/event-loop.md", "docs/mistakes.md",
            "docs/middleware.md", "docs/coming-from-evhttp.md", "docs/coming-from-evpp.md",
            "docs/web-service.md"}
FLAGS = ["-std=c++23", "-fsyntax-only", "-Werror=unused-result", "-DTAMBOUR_FAULTS",
         f"-I{ROOT}/include", f"-I{ROOT}/tests", f"-I{ROOT}/src"]
CLANG = "clang++-19"
# The pages that need other libraries, with the modules of pkg-config. Without these, the page is
# left out.
MODULES = {"docs/adapters.md": ("glib-2.0", "hiredis", "libcares", "libcurl", "libmariadb",
                                "libmosquitto", "libnats", "libpq", "rdkafka", "libssh2",
                                "libsystemd")}

FENCE = re.compile(r"^(```+)(\w*)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- not compiled: \S.* -->\n*$")
# The first line of a definition at the beginning of a line: a function, a class, or a template.
DEFINITION = re.compile(r"(?!if\b|for\b|while\b|switch\b|do\b|else\b|try\b|return\b|co_)"
                        r"(?:template <|Task<.*> \w+\(.*\);|(?:class|struct|enum|namespace) .*\{$|"
                        r"[\w:][\w:<>,&* ]* [&*]?[\w:]+\(.*\) (?:const )?(?:noexcept )?"
                        r"\{(?: .* \})?$)")

# Also a definition of one line.
END = re.compile(r"\};?$|Task<.*> \w+\(.*\);|\S.*\) (?:const )?(?:noexcept )?\{ .* \}$")
PARAMETER = re.compile(r"^// parameter: (.+)$", re.MULTILINE)
INCLUDE = re.compile(r"^// include: (.+)$", re.MULTILINE)


def module_flags(page: str) -> list[str] | None:
    """The flags for the libraries of a page; None if one of them is not installed."""
    if page not in MODULES:
        return []
    result = subprocess.run(["pkg-config", "--cflags", *MODULES[page]], capture_output=True,
                            text=True, check=False)
    return result.stdout.split() if result.returncode == 0 else None


@dataclass(frozen=True)
class Block:
    page: str
    line: int  # Of the first line of code.
    text: str


def blocks_of(page: str, document: str) -> list[Block]:
    """The blocks that are to be compiled."""
    return [Block(page, document[:match.start(3)].count("\n") + 1, match[3])
            for match in FENCE.finditer(document)
            if match[2] == "cpp" and not MARK.search(document[:match.start()])]


def split(text: str) -> list[tuple[bool, int, list[str]]]:
    """The parts of a block: (is a definition, number of the first line, lines)."""
    parts: list[tuple[bool, int, list[str]]] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        begin = number
        is_definition = bool(DEFINITION.match(lines[number]))
        if is_definition:
            while number + 1 < len(lines) and not END.match(lines[number]):
                number += 1
        number += 1
        if parts and not is_definition and not parts[-1][0]:
            parts[-1][2].extend(lines[begin:number])
        else:
            parts.append((is_definition, begin, lines[begin:number]))
    return parts


def compiled(block: Block, name: str, parameters: str) -> str:
    """The block as definitions of a namespace, with the lines of the document."""
    def located(number: int, lines: list[str]) -> str:
        return "\n".join([f'#line {block.line + number} "{block.page}"', *lines]) + "\n"

    if re.search(r"^int main\(", block.text, re.MULTILINE):
        lines = [re.sub(r"^int main\(", "int main_program(", line) if line.startswith("int main(")
                 else re.sub(r"^#include .*", "", line) for line in block.text.splitlines()]
        return f"namespace {name} {{\n{located(0, lines)}}}\n"
    definitions, statements = "", ""
    for is_definition, number, lines in split(block.text):
        if is_definition:
            definitions += located(number, lines)
        else:
            statements += located(number, lines)
    # A block of a plain function returns with `return`.
    is_plain = re.search(r"\breturn;", statements) and "co_" not in statements
    result, end = ("void", "return;") if is_plain else ("Task<>", "co_return;")
    # The inner braces: the block may declare the name of a parameter again.
    body = f"{result} statements({parameters}) {{\n{{\n{statements}}}\n{end}\n}}\n"
    body = body if statements.strip() else ""
    return f"namespace {name} {{\n{definitions}{body}}}\n"


def program_of(blocks: list[Block]) -> str:
    """One translation unit of all blocks."""
    includes = {line for block in blocks for line in block.text.splitlines()
                if line.startswith("#include ")}
    pages = sorted({block.page for block in blocks})
    for page in pages:
        prologue = PROLOGUES / (re.sub(r"\W", "_", Path(page).stem) + ".h")
        if prologue.exists():
            includes.update(f"#include {name}" for name in INCLUDE.findall(prologue.read_text()))
    text = "\n".join(sorted(includes)) + f'\n#include "{PROLOGUES}/common.h"\n'
    for page in pages:
        name = re.sub(r"\W", "_", Path(page).stem)
        text += f"namespace page_{name} {{\n"
        prologue = PROLOGUES / f"{name}.h"
        parameters = ""
        if prologue.exists():
            text += f'#line 1 "{prologue.relative_to(ROOT)}"\n{prologue.read_text()}'
            parameters = ", ".join(PARAMETER.findall(prologue.read_text()))
        for block in blocks:
            if block.page == page:
                text += compiled(block, f"line_{block.line}", parameters)
        text += "}\n"
    return text


def errors_of(program: str, compiler: str) -> str:
    """What the compiler prints; empty if the program is correct."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "snippets.cpp")
        source.write_text(program)
        limit = ["-ferror-limit=0"] if "clang" in compiler else []
        others = [flag for page in MODULES for flag in module_flags(page) or []]
        result = subprocess.run([compiler, *FLAGS, *others, *limit, source], capture_output=True,
                                text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return result.stderr if result.returncode else ""


def all_blocks() -> list[Block]:
    pages = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
    return [block for page in pages if page not in COMPARED and module_flags(page) is not None
            for block in blocks_of(page, (ROOT / page).read_text())]


class Snippets(unittest.TestCase):
    def test_the_snippets_of_the_documents_compile(self) -> None:
        blocks = all_blocks()
        self.assertGreater(len(blocks), 60)
        program = program_of(blocks)
        for compiler in dict.fromkeys((os.environ.get("CXX", "c++"), CLANG)):
            if shutil.which(compiler):
                errors = errors_of(program, compiler)
                if errors:
                    self.fail(f"{compiler}:\n{errors}")

    def test_the_c_programs_of_the_pages_for_other_libraries_compile(self) -> None:
        for library in ("libev", "libevent", "libuv"):
            document = (ROOT / f"docs/coming-from-{library}.md").read_text()
            program = next(match[3] for match in FENCE.finditer(document) if match[2] == "c")
            header = re.search(r"#include <(?:ev|uv|event2/event).h>", program)[0]
            flags = ["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "-"]
            if subprocess.run(["cc", *flags], input=header, text=True, capture_output=True,
                              check=False).returncode != 0:
                continue  # The library is not installed.
            result = subprocess.run(["cc", *flags], input=program, text=True, capture_output=True,
                                    check=False)
            self.assertEqual(result.returncode, 0, f"{library}:\n{result.stderr}")

    def test_finds_an_error_in_a_snippet(self) -> None:
        document = ("text\n\n```cpp\nauto stream = co_await conect(\"example.org:80\");\n```\n"
                    "<!-- not compiled: a planted mark -->\n```cpp\nnothing of this\n```\n")
        blocks = blocks_of("docs/planted.md", document)
        self.assertEqual(len(blocks), 1)
        errors = errors_of(program_of(blocks), os.environ.get("CXX", "c++"))
        self.assertRegex(errors, r"docs/planted.md:4:.*error: .*conect")

    def test_separates_definitions_from_statements(self) -> None:
        text = ("Task<> f(int a) {\n  co_return;\n}\nrouter.use(f);\nif (a) {\n  b();\n}\n"
                "void g(int a) { b(a); }\nf();\n")
        self.assertEqual([(is_definition, first, len(lines))
                          for is_definition, first, lines in split(text)],
                         [(True, 0, 3), (False, 3, 4), (True, 7, 1), (False, 8, 1)])


if __name__ == "__main__":
    unittest.main()
