"""Verifies that each check reports a seeded fault and accepts the same tree without it."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A tree that violates no rule.
CLEAN = {
    "include/tambour/loop/events.h": "// What can happen.\n#pragma once\n\n#include <cstdint>\n",
    "include/tambour/loop/loop.h":
        "// The loop.\n#pragma once\n\n#include <tambour/loop/events.h>\n",
    "src/base/list.h": "// A list.\n#pragma once\n",
    "src/backend/epoll.h": '// epoll.\n#pragma once\n\n#include "base/list.h"\n',
    "src/backend/epoll.cpp":
        '// epoll.\n#include "backend/epoll.h"\n\n#include <tambour/loop/events.h>\n',
    "src/loop/loop.cpp": '// The loop.\n#include <liburing.h>\n\n#include "backend/epoll.h"\n',
    "compat/libev/ev.c": '// libev.\n#include "loop/loop.h"\n',
    "src/loop/loop.h": "// The loop.\n#pragma once\n",
    "examples/echo.cpp": "// Echo.\n#include <tambour/loop/loop.h>\n",
    "src/base/CMakeLists.txt": "tambour_layer(base SOURCES list.cpp)\n",
    "src/backend/CMakeLists.txt":
        "tambour_layer(backend\n  SOURCES epoll.cpp\n  HEADERS loop/events.h\n  NEEDS base)\n",
    "src/loop/CMakeLists.txt": "tambour_layer(loop HEADERS loop/loop.h NEEDS backend)\n",
    "src/events/CMakeLists.txt": "tambour_layer(events NEEDS loop)\n",
    "src/net/CMakeLists.txt": "tambour_layer(net HEADERS loop/stream.h NEEDS loop)\n",
}


class CheckTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name).resolve()
        for path, text in CLEAN.items():
            self.write(path, text)
        for name in (".clang-format", ".clang-tidy"):
            shutil.copy(ROOT / name, self.root)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def check(self, name: str, *options: str) -> subprocess.CompletedProcess:
        result = subprocess.run(
            [sys.executable, "-B", ROOT / "tools/check", "--root", self.root, *options, name],
            capture_output=True, text=True, check=False)
        if result.returncode == 77:
            self.skipTest(result.stdout.strip())
        return result

    def assert_clean(self, name: str) -> None:
        result = self.check(name)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def assert_fault(self, name: str, place: str, message: str) -> None:
        result = self.check(name)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        found = [line for line in result.stdout.splitlines() if line.startswith(place + ": ")]
        self.assertTrue(any(message in line for line in found), result.stdout)


class Layers(CheckTest):
    def test_clean(self) -> None:
        self.assert_clean("layers")

    def test_includes_of_higher_layers(self) -> None:
        for path, line in {
            "src/base/list.h": '#include "backend/epoll.h"',
            "src/backend/epoll.h": '# include  "loop/loop.h"',
            "src/loop/loop.h": '#include "net/stream.h"',
            "src/net/stream.h": '#include "events/signals.h"',
            "src/backend/poll.h": "#include <tambour/loop/loop.h>",
            "include/tambour/loop/stream.h": '#include "base/list.h"',
            "include/tambour/loop/events.h": '#include "base/list.h"',
            "compat/libev/ev.c": '#include "net/stream.h"',
            "bindings/perl/Tambour.xs": '#include "loop/loop.h"',
            "examples/echo.cpp": '#include "base/list.h"',
        }.items():
            with self.subTest(path):
                self.write(path, line + "\n")
                self.assert_fault("layers", f"{path}:1", "may include only")
                self.write(path, CLEAN.get(path, ""))

    def test_public_header_that_includes_a_private_library(self) -> None:
        self.write("include/tambour/loop/loop.h", "#include <liburing.h>\n")
        self.assert_fault("layers", "include/tambour/loop/loop.h:1",
            "must not include this library")

    def test_spelling_of_includes(self) -> None:
        for line, message in {
            '#include "list.h"': 'write "layer/file.h"',
            '#include "../base/list.h"': "write the path relative to src/",
            "#include <base/list.h>": "write headers of a layer as",
            '#include "tambour/loop/events.h"': "write public headers as",
            '#include "base/nothing.h"': "no such header",
            "#include <tambour/loop/nothing.h>": "no such public header",
        }.items():
            with self.subTest(line):
                self.write("src/backend/epoll.cpp", f"\n{line}\n")
                self.assert_fault("layers", "src/backend/epoll.cpp:2", message)

    def test_public_header_that_includes_one_of_a_higher_layer(self) -> None:
        self.write("include/tambour/loop/events.h", "#include <tambour/loop/loop.h>\n")
        self.assert_fault("layers", "include/tambour/loop/events.h:1", "belongs to layer loop")

    def test_public_header_without_a_layer(self) -> None:
        self.write("include/tambour/loop/lost.h", "// Lost.\n#pragma once\n")
        self.assert_fault("layers", "include/tambour/loop/lost.h:1", "belongs to no layer")

    def test_adapters_belong_to_no_layer(self) -> None:
        self.write("include/tambour/adapters/client.h",
                   "// A client.\n#pragma once\n\n#include <ares.h>\n\n"
                   "#include <tambour/loop/loop.h>\n")
        self.assert_clean("layers")
        self.write("src/loop/loop.h", "#include <tambour/adapters/client.h>\n")
        self.assert_fault("layers", "src/loop/loop.h:1", "is an adapter")

    def test_cycles_and_undeclared_layers(self) -> None:
        self.write("src/base/CMakeLists.txt", "tambour_layer(base NEEDS loop)\n")
        self.assert_fault("layers", "src/base/CMakeLists.txt:1", "depends on itself")
        self.write("src/base/CMakeLists.txt", "tambour_layer(base NEEDS cellar)\n")
        self.assert_fault("layers", "src/base/CMakeLists.txt:1", "is not declared")

    def test_circle_of_directories(self) -> None:
        self.write("src/http/CMakeLists.txt", "tambour_layer(http SOURCES files/a.cpp NEEDS net)\n")
        self.write("src/http/protocol.h", "// A.\n#pragma once\n")
        self.write("src/http/coding/b.h", '// B.\n#pragma once\n\n#include "http/protocol.h"\n')
        self.write("src/http/server/c.h", '// C.\n#pragma once\n\n#include "http/coding/b.h"\n')
        self.write("src/http/files/a.cpp", '// A.\n#include "http/server/c.h"\n')
        self.assert_clean("layers")
        self.write("src/http/files/d.h", "// D.\n#pragma once\n")
        self.write("src/http/coding/b.h", '// B.\n#pragma once\n\n#include "http/files/d.h"\n')
        for place in ["src/http/coding/b.h:4", "src/http/server/c.h:4", "src/http/files/a.cpp:2"]:
            self.assert_fault("layers", place, "include each other")

    def test_unknown_layer(self) -> None:
        self.write("src/attic/old.cpp", "// Old.\n")
        self.assert_fault("layers", "src/attic/old.cpp:1", "is not a layer")

    def test_classes_of_higher_layers(self) -> None:
        self.write("src/net/stream.h",
                   "namespace tambour::net {\nclass Stream final : Base<int> {\n public:\n"
                   "  enum class Kind : int { socket };\n};\n}\n")
        for text, message in {
            "namespace tambour::net { class Stream; }": "layer backend declares Stream",
            "namespace tambour {\nnamespace net {\nclass Stream;\n}\n}":
                "layer backend declares Stream",
            "namespace tambour {\nclass Poll {\n  friend class net::Stream;\n};\n}":
                "layer backend befriends net::Stream",
            "namespace tambour::net {\ntemplate <class T>\nclass Poll {\n  friend Stream;\n};\n}":
                "layer backend befriends Stream",
        }.items():
            with self.subTest(text):
                self.write("src/backend/poll.h", text + "\n")
                mentioned = next(number for number, line in enumerate(text.splitlines(), start=1)
                                 if line.endswith(("Stream;", "Stream; }")))
                self.assert_fault("layers", f"src/backend/poll.h:{mentioned}", message)

    def test_classes_of_lower_layers_and_of_no_layer(self) -> None:
        self.write("src/backend/poll.h",
                   "namespace tambour {\nclass Poll {};\nclass Stream {};\n}\n")
        self.write("src/net/stream.cpp",
                   "namespace tambour {\nclass Poll;\nclass Stream {\n  friend class Poll;\n"
                   "  friend class Sink;\n};\n// class Loop;\nclass Sink;\n"
                   "namespace {\nclass Loop {};\n}\n}\n")
        self.write("src/loop/loop.h", "namespace tambour {\nclass Loop;\nclass Stream;\n}\n")
        self.assert_clean("layers")

    def test_drop_in_that_compiles_a_source_of_a_layer(self) -> None:
        for text in ("add_library(ev ${PROJECT_SOURCE_DIR}/src/loop/loop.cpp)",
                     "add_library(ev ../../src/loop/loop.cpp)",
                     "list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/loop/)"):
            with self.subTest(text):
                self.write("compat/libev/CMakeLists.txt", f"# The drop-in.\n{text}\n")
                self.assert_fault("layers", "compat/libev/CMakeLists.txt:2", "compiles none")
        self.write("compat/libev/CMakeLists.txt",
                   "target_include_directories(ev PRIVATE ${PROJECT_SOURCE_DIR}/src)\n"
                   "add_library(ev ev.cpp $<TARGET_OBJECTS:tambour_loop>)\n")
        self.assert_clean("layers")


class Links(CheckTest):
    DOCUMENT = ("# Loops\n\n## Use in C++: `run()`\n\n"
                "See [the header](../include/tambour/loop/loop.h), "
                "[use](#use-in-c-run), [other](other.md#a-b), [src](..), `src/base/`,\n"
                "`base/list_test`, [site](https://example.org/x).\n"
                "```\n[capture](value)\n```\n`[capture](value)`\n")

    def setUp(self) -> None:
        super().setUp()
        self.write("tests/base/list_test.cpp", "// Lists.\n")
        self.write("docs/other.md", "# Other\n### A [b](other.md)\n")
        self.write("docs/loops.md", self.DOCUMENT)

    def test_clean(self) -> None:
        self.assert_clean("links")

    def test_seeded_fault(self) -> None:
        for text, message in {
            "[the header](../include/tambour/loop/lost.h)":
                "../include/tambour/loop/lost.h does not exist",
            "[heading](#uses)": "docs/loops.md has no heading #uses",
            "[heading](other.md#c)": "docs/other.md has no heading #c",
            "`src/base/heap.h`": "src/base/heap.h does not exist",
            "`tests/base/heap_test.cpp`": "tests/base/heap_test.cpp does not exist",
            "`base/heap_test`": "no test tests/base/heap_test.cpp",
        }.items():
            with self.subTest(text):
                self.write("docs/loops.md", self.DOCUMENT + text + "\n")
                self.assert_fault("links", "docs/loops.md:11", message)


class Types(CheckTest):
    HEADER = """\
// What can happen.
#pragma once

namespace tambour {

class Other;

/// A set of events. Nothing else.
enum class Events : int {};

/// A loop that runs: once.
template <class T>
  requires(sizeof(T) > 1)
class Loop {
 public:
  int run();
};

namespace detail {
class Hidden {};
}  // namespace detail

/// Returns all events.
[[nodiscard]] inline Events all_events(int limit) { return Events(limit); }

}  // namespace tambour
"""

    def setUp(self) -> None:
        super().setUp()
        self.write("include/tambour/loop/events.h", self.HEADER)
        events = "[tambour/loop/events.h](../include/tambour/loop/events.h)"
        sys.path.insert(0, str(ROOT / "tools/check"))
        from type_index import HEADER  # pylint: disable=import-error,import-outside-toplevel
        self.page = (f"{HEADER}\n## tambour\n\n| type | header | |\n|---|---|---|\n"
                     f"| `Events` | {events} | A set of events |\n"
                     f"| `Loop` | {events} | A loop that runs |\n"
                     f"\n| function | header | |\n|---|---|---|\n"
                     f"| `all_events()` | {events} | Returns all events |\n")
        self.write("docs/types.md", self.page)

    def test_clean(self) -> None:
        self.assert_clean("types")

    def test_seeded_faults(self) -> None:
        self.write("docs/types.md", self.page.replace("A set of events", "An event"))
        self.assert_fault("types", "docs/types.md:12", "must be `| `Events`")
        self.write("docs/types.md", self.page + "more\n")
        self.assert_fault("types", "docs/types.md:18", "must end here")
        (self.root / "docs/types.md").unlink()
        self.assert_fault("types", "docs/types.md:1", "must be `# Index of types`")

    def test_nested_namespaces(self) -> None:
        before = ("namespace detail::loop {\nint core_of(int loop);\n}  // namespace detail::loop\n"
                  "namespace tls {\nclass Context;\n}\n\n/// Runs (once: always) tasks. Once.\n"
                  "std::function<void(const Loop&)> all_events(int limit);\n\n")
        begin = self.HEADER.index("/// Returns all events.")
        header = self.HEADER[:begin] + self.HEADER[self.HEADER.index("}  // namespace tambour"):]
        self.assertNotEqual(header, self.HEADER)
        header = header.replace("namespace tambour {\n", "namespace tambour {\n" + before, 1)
        self.write("include/tambour/loop/events.h", header)
        self.write("docs/types.md", self.page.replace("Returns all events",
                                                      "Runs (once: always) tasks"))
        self.assert_clean("types")

    def test_overloads_of_several_headers(self) -> None:
        other = "loop/other.h"
        self.write(f"include/tambour/{other}", "#pragma once\nnamespace tambour {\n/// Others.\n"
                   "void all_events();\n}  // namespace tambour\n")
        self.write("docs/types.md", self.page + f"| `all_events()` | [tambour/{other}]"
                   f"(../include/tambour/{other}) | Others |\n")
        self.assert_clean("types")

    def test_description(self) -> None:
        header = self.HEADER.replace("/// Returns all events.\n", "")
        self.write("include/tambour/loop/events.h", header)
        self.write("docs/types.md", self.page.replace("Returns all events", ""))
        self.assert_fault("types", "include/tambour/loop/events.h:1", "must describe all_events")

    def test_module(self) -> None:
        names = ("Events", "Loop", "all_events")
        module = "".join(f"using tambour::{name};\n" for name in names)
        self.write("include/tambour/tambour.cppm", module)
        self.assert_clean("types")
        self.write("include/tambour/tambour.cppm", module.replace("Loop", "Other"))
        self.assert_fault("types", "include/tambour/tambour.cppm:1", "must export tambour::Loop")


class Headers(CheckTest):
    def test_clean(self) -> None:
        self.assert_clean("headers")

    def test_header_that_relies_on_its_includer(self) -> None:
        self.write("include/tambour/loop/loop.h", "#pragma once\ninline std::string name;\n")
        self.assert_fault("headers", "include/tambour/loop/loop.h:1", "does not compile on its own")

    def test_header_without_pragma_once(self) -> None:
        self.write("include/tambour/loop/loop.h", "struct Loop {};\n")
        self.assert_fault("headers", "include/tambour/loop/loop.h:1", "does not compile on its own")


    PUSH = "#pragma GCC visibility push(default)\n"
    POP = "#pragma GCC visibility pop\n"
    NAMESPACE = "namespace tambour {\nstruct Loop {};\n}\n"

    def test_visibility(self) -> None:
        path = "include/tambour/loop/loop.h"
        begin = "// The loop.\n#pragma once\n"
        self.write(path, begin + self.PUSH + self.NAMESPACE + self.POP)
        self.assert_clean("headers")
        self.write(path, begin + self.NAMESPACE)
        self.assert_fault("headers", f"{path}:1", "must contain")
        self.write(path, begin + self.PUSH + self.POP + self.NAMESPACE)
        self.assert_fault("headers", f"{path}:5", "is not between")
        self.write(path, begin + self.PUSH + "#include <cstdint>\n" + self.NAMESPACE + self.POP)
        self.assert_fault("headers", f"{path}:4", "after the visibility was set")

    def test_exported_internal_classes(self) -> None:
        self.write("src/loop/loop.h",
                   "// The loop.\n#pragma once\nnamespace tambour {\nclass Core {};\n"
                   "struct Loop::Parts {};\n}\n")
        path = "include/tambour/loop/loop.h"
        begin = "// The loop.\n#pragma once\n"
        in_advance = "namespace tambour {\nclass Core;\n}\n"
        a_template = "namespace tambour {\ntemplate <class T, int N>\nclass Box;\n}\n"
        members = ("namespace tambour {\nclass Other;\nstruct Loop {\n  {}Parts;\n"
                   "  friend class Core;\n};\nclass Other {};\n}\n")
        hidden = members.replace("{}Parts", 'struct [[gnu::visibility("hidden")]] Parts')
        protected = hidden.replace("hidden", "protected")
        for visible_inside in (hidden, protected):
            self.write(path, begin + in_advance + a_template + self.PUSH + visible_inside +
                       self.POP)
            self.assert_clean("headers")
        self.write(path, begin + self.PUSH + in_advance + hidden + self.POP)
        self.assert_fault("headers", f"{path}:5", "tambour::Core is internal")
        self.write(path, begin + self.PUSH + members.replace("{}Parts", "struct Parts") + self.POP)
        self.assert_fault("headers", f"{path}:7", "tambour::Loop::Parts is internal")
        self.write(path, begin + in_advance + "int x;\n" + self.PUSH + hidden + self.POP)
        self.assert_fault("headers", f"{path}:6", "is not between")



class Comments(CheckTest):
    HEADER = """\
// Pots: `Size` is in litres.
#pragma once

namespace tambour {

using Size = int;

/// What boils.
class Pot {
 public:
  Pot() = default;
  Pot(const Pot&) = default;
  bool operator==(const Pot&) const = default;

  /// Litres.
  Size size() const;
  void set_size(Size size);

  class Wait {
   public:
    bool await_ready();
  };
  /// Waits until the water boils.
  Wait boil();

 private:
  void heat();
  Size size_ = 1;
};

namespace detail {
void clean(Pot& pot);
}  // namespace detail
}  // namespace tambour
"""

    def test_symbols_with_the_comment_of_their_group_or_header(self) -> None:
        self.write("include/tambour/loop/pot.h", self.HEADER)
        self.assert_clean("comments")

    def test_symbols_without_a_comment(self) -> None:
        for place, line, name in [
            (":27", "  int lids() const;\n", "lids"),
            (":35", "void wash(Pot& pot);\n", "wash"),
            (":35", "struct Lid {\n  int size;\n};\n", "Lid"),
            (":35", "enum class Heat { low, high };\n", "Heat"),
        ]:
            with self.subTest(name):
                before = " private:" if place == ":27" else "}  // namespace tambour\n"
                head, tail = self.HEADER.rsplit(before, 1)
                self.write("include/tambour/loop/pot.h", f"{head}\n{line}{before}{tail}")
                self.assert_fault("comments", f"include/tambour/loop/pot.h{place}",
                                  f"{name} has no comment")

    def test_symbols_of_adapters_without_a_comment(self) -> None:
        header = self.HEADER.replace("namespace tambour {", "namespace tambour::adapters {")
        path = "include/tambour/adapters/pot.h"
        self.write(path, header)
        self.assert_clean("comments")
        self.write(path, header.replace("\n private:", "\n  int lids() const;\n private:"))
        self.assert_fault("comments", f"{path}:26", "lids has no comment")


class Names(CheckTest):
    HEADER = "include/tambour/http/url.h"
    OPENING = "// URLs.\n#pragma once\n\n"

    def test_clean(self) -> None:
        self.write("include/tambour/loop.h",
            "// Loops.\n#pragma once\n#include <tambour/loop/loop.h>\n")
        self.write(self.HEADER, self.OPENING + "namespace tambour {\nclass Loop;\n}\n"
                   "namespace tambour::http {\nnamespace detail::h1 {\nclass Parser {};\n"
                   "}  // namespace detail::h1\n\nclass Url {\n  void set(int value) {}\n};\n"
                   "}  // namespace tambour::http\n")
        self.write("src/base/list.cpp", "void f() { error.what(); }  // what each does\n")
        self.assert_clean("names")

    def test_flat_header(self) -> None:
        self.write("include/tambour/http_url.h", "// URLs.\n#pragma once\n")
        self.assert_fault("names", "include/tambour/http_url.h:1", "must be in a directory")

    def test_umbrella_that_declares(self) -> None:
        self.write("include/tambour/loop.h", "// Loops.\n#pragma once\nclass Loop;\n")
        self.assert_fault("names", "include/tambour/loop.h:1", "may only include")

    def test_type_outside_its_namespace(self) -> None:
        self.write(self.HEADER, self.OPENING + "namespace tambour {\n\nclass Url {\n};\n\n}\n")
        self.assert_fault("names", f"{self.HEADER}:6", "Url must be in namespace tambour::http")
        self.write("include/tambour/loop/loop.h",
                   self.OPENING + "namespace tambour::http {\nstruct Loop {\n};\n}\n")
        self.assert_fault("names", "include/tambour/loop/loop.h:5", "in namespace tambour")

    def test_internal_namespace(self) -> None:
        for text in ("namespace tambour::io {\n", "namespace tambour {\nnamespace io {\n"):
            with self.subTest(text):
                self.write(self.HEADER, self.OPENING + text + "class Transport;\n}\n")
                line = 3 + text.count("\n")
                self.assert_fault("names", f"{self.HEADER}:{line}",
                    "must be in a namespace `detail`")

    def test_pronouns(self) -> None:
        for name in ("each", "made", "what", "how", "own", "which", "most", "its_name"):
            with self.subTest(name):
                self.write("tests/net/read.cpp", f"// Reads.\nvoid f(int {name});\n")
                self.assert_fault("names", "tests/net/read.cpp:2", "cannot be read alone")


class Style(CheckTest):
    def test_clean(self) -> None:
        self.assert_clean("style")

    def test_line_and_file_at_the_limits(self) -> None:
        self.write("src/base/list.h", "//" + "x" * 98 + "\n#pragma once\n" + "\n" * 498)
        self.assert_clean("style")

    def test_seeded_fault(self) -> None:
        opening = "// A list.\n#pragma once\n"
        for text, line, message in [
            ("//" + "x" * 99 + "\n#pragma once\n", 1, "101 columns"),
            (opening + "\n" * 499, 500, "501 lines"),
            (opening + "// TO" + "DO: later\n", 3, "file an issue"),
            (opening + "int x;  // FIX" + "ME\n", 3, "file an issue"),
            (opening + "// #include <vector>\n", 3, "commented-out #include"),
            (opening + "int x; \n", 3, "trailing space"),
            (opening + "\tint x;\n", 3, "tab character"),
            ("#pragma once\n", 1, "the file must begin with"),
            ("// A list.\n", 1, "#pragma once is missing"),
        ]:
            with self.subTest(message):
                self.write("src/base/list.h", text)
                self.assert_fault("style", f"src/base/list.h:{line}", message)

    def test_times_and_durations_of_options_are_added_with_saturation(self) -> None:
        self.write("include/tambour/loop/loop.h",
                   "// The loop.\n#pragma once\n\nstruct LoopOptions {\n  Duration patience = 5s;\n"
                   "  std::optional<Duration> rest{};\n};\n")
        for line in [
            "auto end = loop.now() + limit;",
            "auto end = limit + core().now_ns();",
            "end_ns_ += core_->clock_ns();",
            "auto end = started_ + options_.patience;",
            "auto end = options().patience.count() + now_ns;",
            "auto end = begin + *options->rest;",
            "auto all = options.patience * 2;",
            "auto end =\n    begin +\n    options_.patience;",
        ]:
            with self.subTest(line):
                self.write("src/base/list.h", f"// A list.\n#pragma once\n{line}\n")
                number = 4 if "\n" in line else 3
                self.assert_fault("style", f"src/base/list.h:{number}", "saturating_add")
        self.write("src/base/list.h",
                   "// A list: loop.now() + limit.\n#pragma once\n"
                   "auto end = base::saturating_add(loop.now(), options_.patience);\n"
                   "auto left = end - loop.now();\n"
                   "auto text = \"in \" + text_of(options_.patience);\n")
        self.assert_clean("style")

    def test_coroutines_are_resumed_in_one_place(self) -> None:
        text = "// Tasks.\nvoid run() {\n  handle.resume();\n}\n"
        self.write("src/task/task.cpp", text)
        self.write("src/loop/loop.cpp", "// Not handle.resume().\nvoid run() { loop->resume(); }\n")
        self.assert_clean("style")
        for path in ("src/process/process.cpp", "include/tambour/loop/wait.h"):
            with self.subTest(path):
                self.write(path, text)
                self.assert_fault("style", f"{path}:3", "Resumption::run()")

    def test_awaits_that_gcc_12_evaluates_too_early(self) -> None:
        for statement, message in [
            ("while (ok && co_await read()) {}", "in the condition of a loop"),
            ("if (a || !co_await read() ||\n      b) return;", "make it the last operand"),
            ("co_await read(ok ? a : b);", "name its value first"),
            ("const int x = ok ? a : co_await read();", "name its value first"),
        ]:
            with self.subTest(statement):
                self.write("tests/net/read.cpp", f"// Reads.\nvoid f() {{\n  {statement}\n}}\n")
                self.assert_fault("style", "tests/net/read.cpp:3", message)
        for statement in [
            "if (a || b || !co_await read()) return;",
            "while (co_await read()) {}",
            "while (a && b) got = co_await read();",
            'co_await write("a ? b : c && d");',
        ]:
            with self.subTest(statement):
                self.write("tests/net/read.cpp", f"// Reads.\nvoid f() {{\n  {statement}\n}}\n")
                self.assert_clean("style")

    def test_opening_comment(self) -> None:
        self.write("src/base/list.cpp", '// List: growing.\n#include "base/list.h"\n')
        self.write("compat/libev/ev.c", '/* libev. */\n#include "loop/loop.h"\n')
        self.assert_clean("style")
        for path in ("src/base/list.cpp", "compat/libev/ev.c", "tests/net/peer.cpp"):
            with self.subTest(path):
                self.write(path, '#include "base/list.h"\n')
                self.assert_fault("style", f"{path}:1", "the file must begin with a comment")

    def test_test_files_have_a_namespace(self) -> None:
        self.write("tests/net/read_test.cpp",
                   "// Reads.\nnamespace tambour::read_test {\n}\n")
        self.assert_clean("style")
        self.write("tests/net/read_test.cpp", "// Reads.\nnamespace tambour {\n}\n")
        self.assert_fault("style", "tests/net/read_test.cpp:1", "namespace tambour::read_test")

    def test_script_without_extension_is_checked(self) -> None:
        self.write("tools/script", "#!/bin/sh\n# " + "x" * 100 + "\n")
        self.assert_fault("style", "tools/script:2", "102 columns")

    def test_file_name(self) -> None:
        self.write("src/base/LinkedList.h", "// A list.\n#pragma once\n")
        self.assert_fault("style", "src/base/LinkedList.h:1", "snake_case")

    def test_number_of_files_in_a_directory(self) -> None:
        for number in range(25):
            self.write(f"tests/net/file{number}.h", "// A test.\n")
        self.assert_clean("style")
        self.write("tests/net/file25.cpp", "// A test.\n")
        self.assert_fault("style", "tests/net:1", "26 sources, limit 25")


class Format(CheckTest):
    def test_clean(self) -> None:
        self.assert_clean("format")

    def test_seeded_fault(self) -> None:
        self.write("src/base/list.h", "// A list.\n#pragma once\n\nint  *first();\n")
        self.assert_fault("format", "src/base/list.h:4", "not formatted")

    def test_order_of_includes(self) -> None:
        self.write("src/backend/epoll.cpp",
                   '#include <tambour/loop/events.h>\n#include "backend/epoll.h"\n')
        self.assert_fault("format", "src/backend/epoll.cpp:1", "not formatted")


class Shell(CheckTest):
    def test_seeded_fault(self) -> None:
        self.assert_clean("shell")
        self.write("tools/script", "#!/bin/sh\necho $1\n")
        self.assert_fault("shell", "tools/script:2", "SC2086")


class Findings(CheckTest):
    def setUp(self) -> None:
        super().setUp()
        # CMake writes absolute paths.
        source = f"{self.root}/src/loop/loop.cpp"
        command = {"directory": f"{self.root}/build", "file": source,
                   "command": f"c++ -std=c++23 -I{self.root}/src -c {source}"}
        self.write("build/compile_commands.json", json.dumps([command]))

    def test_seeded_fault(self) -> None:
        self.write("src/loop/loop.cpp", '// The loop.\n#include "loop/loop.h"\n\nint count;\n')
        self.assert_clean("findings")
        self.write("src/loop/loop.cpp", "// The loop.\nclass event_loop {};\nint* first = 0;\n")
        self.assert_fault("findings", "src/loop/loop.cpp:2", "readability-identifier-naming")
        self.assert_fault("findings", "src/loop/loop.cpp:3", "modernize-use-nullptr")

    def test_header(self) -> None:
        self.write("src/loop/loop.cpp", '// The loop.\n#include "loop/loop.h"\n')
        self.write("src/loop/loop.h",
                   "// The loop.\n#pragma once\n\nclass Loop {\n  int count = 0;\n};\n")
        self.assert_fault("findings", "src/loop/loop.h:5", "private member 'count'")

    def test_source_that_does_not_compile(self) -> None:
        self.write("src/loop/loop.cpp", "int count = nothing;\n")
        self.assert_fault("findings", "src/loop/loop.cpp:1", "undeclared identifier")

    def compile(self, *names: str) -> None:
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": f"{self.root}/build", "file": f"{self.root}/{name}",
              "command": f"c++ -std=c++23 -I{self.root}/src -c {self.root}/{name}"}
             for name in names]))

    def assert_pointers(self, *places: str) -> None:
        result = self.check("findings")
        for place in places:
            self.assertIn(f"{place}: error: use nullptr", result.stdout)
        self.assertNotIn("redefinition", result.stdout)

    def test_sources_of_several_layers_are_checked_together(self) -> None:
        self.write("src/loop/run.cpp", "int* first = 0;\n")
        self.write("src/loop/loop.cpp", "int* second = 0;\n")
        self.write("src/net/stream.cpp", "int* third = 0;\n")
        self.compile("src/loop/run.cpp", "src/loop/loop.cpp", "src/net/stream.cpp")
        self.assert_pointers("src/loop/run.cpp:1", "src/loop/loop.cpp:1", "src/net/stream.cpp:1")

    def test_layers_with_equal_names_are_checked_alone(self) -> None:
        for name in ("src/loop/loop.cpp", "src/net/stream.cpp"):
            self.write(name, "namespace {\nint* limit = 0;\n}\n")
        self.compile("src/loop/loop.cpp", "src/net/stream.cpp")
        self.assert_pointers("src/loop/loop.cpp:2", "src/net/stream.cpp:2")

    def test_sources_that_the_build_compiles_together(self) -> None:
        self.write("src/loop/loop.cpp", "int* first = 0;\n")
        self.write("src/loop/run.cpp", "int* second = 0;\n")
        self.write("build/unity_0_cxx.cxx", "".join(
            f'#include "{self.root}/src/loop/{name}"\n' for name in ("loop.cpp", "run.cpp")))
        self.compile("build/unity_0_cxx.cxx")
        self.assert_pointers("src/loop/loop.cpp:1", "src/loop/run.cpp:1")


if __name__ == "__main__":
    unittest.main()
