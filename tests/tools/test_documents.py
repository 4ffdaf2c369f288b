"""Verifies that every test named in docs/ exists, and that docs/events.md covers every event type
of libev."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The watcher types of libev's manual, section "WATCHER TYPES".
LIBEV_TYPES = ("ev_io", "ev_timer", "ev_periodic", "ev_signal", "ev_child", "ev_stat", "ev_idle",
               "ev_prepare", "ev_check", "ev_embed", "ev_fork", "ev_cleanup", "ev_async")

FOLDERS = "|".join(sorted({path.relative_to(ROOT / "tests").parts[0]
                           for path in (ROOT / "tests").rglob("*_test.cpp")}))
# net.core and net.unix are directories of sysctl(8), and task.h is a header.
ENTRY = re.compile(rf"`((?!net\.(?:core|unix)\.)(?:{FOLDERS})(?:\.[a-z0-9_]+)+)(?<!\.h)(?<!\.cpp)`")
CASE = re.compile(r"`(the_[a-z0-9_]+)`")


def entries(text: str) -> list[str]:
    """Returns the tests that a text names, as ctest lists them without the backend."""
    return ENTRY.findall(text)


def source_of(entry: str) -> Path:
    """Returns the source file of the test, see tests/CMakeLists.txt."""
    return ROOT / "tests" / f"{entry.replace('.', '/')}_test.cpp"


def rows(text: str, first: str) -> dict[str, list[str]]:
    """Returns the rows of the table with the header line `first`, keyed by their first cell."""
    table: dict[str, list[str]] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(first):
            next(lines)
            break
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        table[cells[0].strip("`")] = cells
    return table


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        self.events = (ROOT / "docs/events.md").read_text()

    def test_every_named_test_exists(self) -> None:
        documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for document in documents:
            for entry in entries(document.read_text()):
                self.assertTrue(source_of(entry).is_file(), f"{document.name}: no test {entry}")

    def test_detects_a_missing_test(self) -> None:
        self.assertEqual(entries("| `ev_x` | see | `events.nothing`, `conformance.hooks` |"),
                         ["events.nothing", "conformance.hooks"])
        self.assertFalse(source_of("events.nothing").exists())

    def test_every_named_test_case_exists(self) -> None:
        sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("*_test.cpp"))
        for case in CASE.findall(self.events):
            self.assertIn(f" {case})", sources)

    def test_what_simulation_md_quotes_is_in_the_example(self) -> None:
        document = (ROOT / "docs/simulation.md").read_text()
        section = document.split("## What runs in a simulation")[1].split("\n## ")[0]
        example = (ROOT / "examples/simulated_service.cpp").read_text()
        lines = [line.strip() for line in example.splitlines()]
        blocks = re.findall(r"```cpp\n(.*?)```", section, re.DOTALL)
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            quoted = [line.strip() for line in block.splitlines()]
            self.assertTrue(any(lines[at:at + len(quoted)] == quoted for at in range(len(lines))),
                            f"not in the example:\n{block}")

    def test_what_the_migration_pages_quote_of_tambour_is_in_their_programs(self) -> None:
        programs = [path.read_text() for path in (ROOT / "examples/migration").glob("*.cpp")]
        for peer in ("evhttp", "evpp"):
            document = (ROOT / f"docs/coming-from-{peer}.md").read_text()
            blocks = re.findall(r"```cpp\n(.*?)```", document, re.DOTALL)
            quoted = [block for block in blocks if "evpp::" not in block]
            self.assertGreaterEqual(len(quoted), 4)
            for block in quoted:
                self.assertTrue(any(block in program for program in programs),
                                f"not in a program:\n{block}")

    def test_what_client_libraries_md_quotes_is_in_the_examples(self) -> None:
        programs = [path.read_text() for path in (ROOT / "examples/client_libraries").glob("*.cpp")]
        document = (ROOT / "docs/client-libraries.md").read_text()
        blocks = re.findall(r"```cpp\n(.*?)```", document, re.DOTALL)
        self.assertGreaterEqual(len(blocks), 7)
        for block in blocks:
            self.assertTrue(any(block in program for program in programs),
                            f"not in a program:\n{block}")

    def test_what_the_pages_with_a_program_quote_is_in_it(self) -> None:
        for page, program in (("awaitables", "callback_api"), ("per-loop-state", "per_loop_state")):
            document = (ROOT / f"docs/{page}.md").read_text()
            blocks = re.findall(r"```cpp\n(.*?)```", document, re.DOTALL)
            example = (ROOT / f"examples/{program}.cpp").read_text()
            # The other blocks are sketches.
            self.assertGreaterEqual(sum(block in example for block in blocks), 2, page)

    def test_what_web_service_md_quotes_of_its_tests_is_in_them(self) -> None:
        document = (ROOT / "docs/web-service.md").read_text().split("\n## Tests")[1]
        blocks = re.findall(r"```cpp\n(.*?)```", document, re.DOTALL)
        self.assertEqual(len(blocks), 2)
        tests = (ROOT / "examples/web_service/test.cpp").read_text()
        for block in blocks:
            self.assertIn(block, tests)

    def test_examples_md_lists_every_example(self) -> None:
        document = (ROOT / "docs/examples.md").read_text()
        listed = set(re.findall(r"\(\.\./(examples/[^)]*)\)", document))
        sources = [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".cpp", ".h")]
        self.assertEqual(listed, {str(path.relative_to(ROOT)) for path in sources})

    def test_the_counterparts_that_the_pages_for_other_libraries_name_exist(self) -> None:
        headers = "".join(path.read_text() for path in (ROOT / "include/tambour").rglob("*.h"))
        known = set(re.findall(r"\w+", headers))
        pages = [path for path in (ROOT / "docs").glob("coming-from-*.md")]
        self.assertGreater(len(pages), 8)
        for page in pages:
            table = page.read_text().replace("\\|", "").split("\n|---|---|\n")[1].split("\n\n")[0]
            rows_of_table = [line.strip("|").split("|") for line in table.splitlines()]
            self.assertGreater(len(rows_of_table), 10, page.name)
            for peer, counterpart in rows_of_table:
                names = re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", counterpart)))
                self.assertEqual([name for name in names if name not in known], [],
                                 f"{page.name}: {peer}")

    def test_what_event_loop_md_quotes_is_in_the_example(self) -> None:
        document = (ROOT / "docs/event-loop.md").read_text()
        blocks = re.findall(r"```cpp\n(.*?)```", document, re.DOTALL)
        self.assertEqual(len(blocks), 4)
        example = (ROOT / "examples/event_loop.cpp").read_text()
        for block in blocks:
            self.assertIn(block, example)

    def test_what_middleware_md_quotes_is_in_the_example(self) -> None:
        document = (ROOT / "docs/middleware.md").read_text()
        blocks = re.findall(r"```cpp\n(.*?)```", document, re.DOTALL)
        self.assertGreaterEqual(len(blocks), 10)
        example = (ROOT / "examples/http_middleware.cpp").read_text()
        for block in blocks:
            self.assertIn(block.rstrip("\n"), example)

    def test_the_picture_of_the_layers_is_that_of_cmake(self) -> None:
        needs = {}
        for file in (ROOT / "src").glob("*/CMakeLists.txt"):
            for call in re.findall(r"tambour_layer\(([^)]*)\)", file.read_text()):
                lower = re.search(r"\bNEEDS((?:\s+[a-z_]+)+)", call)
                needs[call.split()[0]] = lower[1].split() if lower else []
        document = (ROOT / "docs/internals.md").read_text()
        picture = document.split("```layers\n")[1].split("```")[0]
        # The first column has a word for each row.
        rows = {name: number for number, row in enumerate(picture.splitlines())
                for name in row[18:].split()}
        self.assertEqual(rows.keys(), needs.keys())
        for layer, lower in needs.items():
            for need in lower:
                self.assertLess(rows[layer], rows[need], f"{layer} is not above {need}")

    def test_contributing_md_names_the_directories_of_public_headers(self) -> None:
        table = rows((ROOT / "CONTRIBUTING.md").read_text(),
                     "| layer | contents | public headers | depends on |")
        layers = {file.parent.name: file.read_text()
                  for file in (ROOT / "src").glob("*/CMakeLists.txt")}
        self.assertGreater(len(layers), 20)
        for name, text in layers.items():
            headers = re.search(r"\bHEADERS((?:\s+[\w/]+\.h)+)", text)
            folders = {header.split("/")[0] for header in headers[1].split()} if headers else set()
            self.assertEqual(set(re.findall(r"`(\w+)/`", table[f"src/{name}/"][2])),
                             folders - {"detail"}, name)

    def test_the_program_of_the_readme_is_an_example(self) -> None:
        block = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        self.assertIsNotNone(block)
        self.assertIn(block.group(1), (ROOT / "examples/hello.cpp").read_text())

    def test_every_type_of_libev_has_a_counterpart_and_a_test(self) -> None:
        table = rows(self.events, "| libev | Tambour | what differs | test |")
        self.assertEqual(sorted(table), sorted(LIBEV_TYPES))
        for libev, (_, counterpart, _, test) in table.items():
            header = re.search(r"\(\.\./(include/[^)]*)\)", counterpart)
            name = re.search(r"`(\w+)`", counterpart)
            self.assertTrue(header and name, libev)
            self.assertRegex((ROOT / header.group(1)).read_text(),
                             rf"\b(class|using) {name.group(1)}\b", libev)
            self.assertTrue(entries(test), f"{libev} names no test")
            sources = [source_of(entry).read_text() for entry in entries(test)]
            self.assertTrue(any(re.search(rf"\b{name.group(1)}\b", source) for source in sources),
                            f"{libev}: none of its tests uses {name.group(1)}")

    def test_every_row_names_a_test(self) -> None:
        table = rows(self.events, "| libev | Tambour | test |")
        self.assertGreater(len(table), 10)
        for libev, cells in table.items():
            self.assertTrue(entries(cells[-1]) or cells[-1] == "each of the above", libev)


if __name__ == "__main__":
    unittest.main()
