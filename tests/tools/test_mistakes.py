"""Makes the mistakes of docs/mistakes.md, and compares what is printed with the page.

    test_mistakes.py PROGRAM

PROGRAM is built from mistakes.cpp. Numbers of lines, threads, descriptors and ports differ.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^### (.*?)\n\n```cpp\n(.*?)```\n\n```text\n(.*?)```",
                     re.MULTILINE | re.DOTALL)


def sections_of(heading: str) -> list[tuple[str, str, str]]:
    """The title, code and message of each mistake below a heading of the page."""
    page = (ROOT / "docs/mistakes.md").read_text()
    text = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return SECTION.findall(text)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def normalized(message: str) -> str:
    """A message without what differs from run to run, and from the page."""
    message = re.sub(r"[\w./+-]+:\d+\b", "PLACE", in_one_line(message))
    return re.sub(r"\b(thread|fd) \d+", r"\1 N", message)


def bodies_of(program: str) -> dict[str, str]:
    """The statements of each function without parameters."""
    functions = re.findall(r"^void (\w+)\(\) \{\n(.*?)^\}", program, re.MULTILINE | re.DOTALL)
    return {in_one_line(body): name for name, body in functions}


class Mistakes(unittest.TestCase):
    def test_the_library_reports_them_as_the_page_says(self) -> None:
        functions = bodies_of((ROOT / "tests/tools/mistakes.cpp").read_text())
        mistakes = sections_of("Mistakes that the library reports")
        self.assertEqual(len(mistakes), len(functions))
        for title, code, message in mistakes:
            with self.subTest(title):
                self.assertIn(in_one_line(code), functions)
                result = subprocess.run([PROGRAM, functions[in_one_line(code)]], text=True,
                                        capture_output=True, check=False, timeout=60)
                self.assertEqual(normalized(result.stderr), normalized(message))

    def test_the_compiler_reports_them_as_the_page_says(self) -> None:
        program = in_one_line((ROOT / "tests/package/compile_errors.cpp").read_text())
        mistakes = sections_of("Mistakes that the compiler reports")
        self.assertGreater(len(mistakes), 5)
        for title, code, message in mistakes:
            # check_compile_errors compares these comments with what the compilers print.
            place = in_one_line(f"{message} {code}")
            self.assertRegex(program, rf"// (error|warning(?: by \w+)?): {re.escape(place)}", title)

    def test_the_check_of_coroutines_reports_them_as_the_page_says(self) -> None:
        tool = (ROOT / "tools/tambour-check-coroutines").read_text()
        messages = in_one_line(re.sub(r'"\s+"', "", tool))
        for title, _, message in sections_of(
                "Mistakes that `tambour-check-coroutines` reports"):
            self.assertIn(in_one_line(message), messages, title)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
