"""Verifies that tambour-check-coroutines finds seeded coroutines of each bug of GCC 12, and only
these, and that the compiler agrees about those whose frame is misplaced."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/tambour-check-coroutines"
SHAPES = ROOT / "tests/package/coroutine_shapes.cpp"

MESSAGES = {
    "frame": "co_await in a condition",
    "temporary": "this temporary of a co_await",
    "variable": "this aggregate variable",
    "list": "this braced list",
    "operand": "the operand of this co_await",
    "between": "this co_await between",
    "loop": "in the condition of a loop",
    "choice": "both branches of ?:",
    "captures": "the coroutine of this lambda",
}

SEEDED = """\
#include <functional>
#include <string>
#include <vector>
#include <tambour/task.h>
using namespace tambour;
struct Options { std::string path; int level = 0; };
struct Plain { int level = 0; };
Task<bool> open(Options options);
Task<bool> call(std::function<void()> function);
Task<bool> number(int value);
Task<bool> plain(Plain options);

Task<> aggregate() { co_await open(Options{.path = "x"}); }  // temporary
Task<> braces() { co_await open({.path = "x"}); }  // temporary
Task<> captures(std::string text) { co_await call([text] {}); }  // temporary
Task<> reference(std::string text) { co_await call([&text] {}); }
Task<> trivial() { co_await plain({.level = 1}); }
Task<bool> names(std::vector<std::string> list);
Task<std::string> name();
std::string name_of();
Task<> variable() { Options options{.path = co_await name()}; }  // variable
Task<> copied() { const Options options = {co_await name(), 1}; }  // variable
Task<> lambda_in_braces() {
  struct Job { std::string text; std::function<Task<>()> run; };
  const Job job{name_of(), []() -> Task<> { co_await number(1); }};
  static const Job jobs[] = {{"a", []() -> Task<> { co_await number(1); }}};
  std::vector<std::function<Task<>()>> list{[]() -> Task<> { co_await number(1); }};
  co_await job.run();
}
const std::function<Task<>()> tasks[] = {[]() -> Task<> { co_await number(1); }};
Task<> trivial_variable() { Plain options{.level = co_await number(1)}; }
Task<> named() { std::string text = co_await name(); Options options{.path = std::move(text)}; }
Task<> listed() { co_await names({"a", "b"}); }  // temporary list
Task<> awaited() { std::vector<std::string> list{co_await name(), "b"}; }  // list
Task<> in_a_lambda() { co_await call([] { std::vector<int> list{1, 2}; }); }
Task<> list_before() { std::vector<std::string> list{"a", "b"}; co_await names(std::move(list)); }
Task<> constructed() { co_await number(int(std::string("x").size())); }
Task<> task_of(bool flag) { co_await (flag ? number(1) : number(2)); }  // operand choice
Task<> argument(bool flag) { co_await number(flag ? 1 : 2); }  // choice
Task<> elsewhere(bool flag) { co_await number(1); const int value = flag ? 1 : 2; }
Task<> chain(bool left, bool right) {
  const bool named = left;
  if (named || !co_await number(1) || right) co_return;  // between
  if (named || right || co_await number(1)) co_return;
}
Task<> nested(bool left, bool right) {
  const bool named = left;
  if (named && (co_await number(1) || right)) co_return;  // between
}
Task<> loop(bool left) {
  const bool named = left;
  while (named && co_await number(1)) {}  // loop
  do {} while (named && co_await number(1));  // loop
  while (co_await number(1)) {}
}
Task<> condition() { if (co_await number(1)) co_return; }  // frame
auto lambda = [] -> Task<> { if (co_await number(1)) co_return; };
void start(EventLoop& loop, std::string text) {
  spawn(loop, [text]() -> Task<> { co_await number(int(text.size())); }());  // captures
  spawn(loop, [&]() -> Task<> { co_await number(int(text.size())); }());  // captures
  spawn(loop, [](std::string own) -> Task<> { co_await number(int(own.size())); }(text));
  spawn(loop, [text]() -> Task<> { co_await number(int(text.size())); });
  block_on([&]() -> Task<> { co_await number(int(text.size())); }());
}
Task<> here(std::string text) { co_await [&]() -> Task<> { co_await number(int(text.size())); }(); }
template <class T> Task<> of(T value) { if (co_await number(value)) co_return; }  // frame
template Task<> of(int);
"""


def expected(text: str) -> set[tuple[int, str]]:
    found = set()
    for number, line in enumerate(text.splitlines(), start=1):
        marks = re.search(r"// ([\w ]+)$", line)
        words = marks.group(1).split() if marks else []
        found |= {(number, word) for word in words if set(words) <= set(MESSAGES)}
    return found


class Coroutines(unittest.TestCase):
    def setUp(self) -> None:
        if not shutil.which("clang-query-19"):
            self.skipTest("clang-query-19 is not installed")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.build = Path(directory.name)

    def run_tool(self, source: Path) -> subprocess.CompletedProcess:
        command = f"c++ -std=c++23 -I{ROOT / 'include'} -c {source}"
        entry = {"directory": str(self.build), "file": str(source), "command": command}
        (self.build / "compile_commands.json").write_text(json.dumps([entry]))
        return subprocess.run([sys.executable, "-B", TOOL, "-p", self.build],
                              capture_output=True, text=True, check=False)

    def assert_findings(self, source: Path) -> None:
        wanted = expected(source.read_text())
        self.assertTrue(wanted)
        result = self.run_tool(source)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        found = set()
        for line in result.stdout.splitlines():
            _, number, _, message = line.split(":", 3)
            kinds = [kind for kind, text in MESSAGES.items() if text in message]
            self.assertEqual(len(kinds), 1, line)
            found.add((int(number), kinds[0]))
        self.assertEqual(found, wanted)

    def test_finds_each_seeded_shape(self) -> None:
        source = self.build / "seeded.cpp"
        source.write_text(SEEDED)
        self.assert_findings(source)

    def test_finds_the_functions_that_the_library_refuses_to_start(self) -> None:
        self.assert_findings(SHAPES)

    def test_accepts_code_without_these_shapes(self) -> None:
        result = self.run_tool(ROOT / "examples/echo.cpp")
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_reports_what_clang_cannot_compile(self) -> None:
        source = self.build / "broken.cpp"
        source.write_text("int main() { co_await undeclared; }\n")
        result = self.run_tool(source)
        self.assertEqual(result.returncode, 2)
        self.assertIn("clang cannot compile it", result.stderr)


if __name__ == "__main__":
    unittest.main()
