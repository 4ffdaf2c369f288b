"""Tests the generator of the documentation: links into the tree, and the pages of headers."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/docs"), str(ROOT / "tools/check")]

# pylint: disable=wrong-import-position
from pages import Pages  # noqa: E402
from versions import write_versions  # noqa: E402
# pylint: enable=wrong-import-position

try:
    import reference
    from header_unit import parse
    parse(ROOT, "base.h")
except Exception:  # pylint: disable=broad-except  # Neither the module nor the library is required.
    reference = None

HEADER = """\
// Pots: what boils.
#pragma once

namespace tambour {

/// Boils water, which takes a while. Not `copied`, and <hot>:
/// - with a lid, *soon*,
///   or without;
/// - slowly.
///
///   Pot pot(2);
///   pot.set_size(3);
///
/// Thread: any.
class Pot {
 public:
  Pot(Pot&&) noexcept;
  explicit Pot(int size) : size_(size) {}

  /// Litres.
  [[nodiscard]] int size() const noexcept { return size_; }
  void set_size(int size);

  class Wait {};

 private:
  int size_;
};

struct PotOptions {
  int size = 1;  ///< Litres.
};

namespace detail {
/// Not public.
class Lid {};
}  // namespace detail
}  // namespace tambour
"""


class Links(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        (self.root / "docs").mkdir()
        (self.root / "include/tambour/net").mkdir(parents=True)
        (self.root / "include/tambour/net/stream.h").touch()
        (self.root / "tools").mkdir()
        (self.root / "tools/run").write_text("echo ```\n")

    def text_of(self, document: str) -> str:
        (self.root / "docs/page.md").write_text(document)
        self.pages = Pages(self.root)
        self.pages.add_document("docs/page.md")
        self.pages.add_wanted()
        return self.pages.texts["page.md"]

    def test_lead_to_pages_of_the_site(self) -> None:
        (self.root / "README.md").write_text("[page](docs/page.md)\n")
        self.assertEqual(self.text_of("[s](../include/tambour/net/stream.h#a) [r](../README.md)"),
                         "[s](reference/net/stream.md#a) [r](index.md)")
        self.assertEqual(self.pages.texts["index.md"], "[page](page.md)\n")

    def test_lead_to_a_page_with_the_text_of_a_file(self) -> None:
        self.assertEqual(self.text_of("[run](../tools/run)"), "[run](source/tools/run.md)")
        self.assertIn("echo ```\n", self.pages.texts["source/tools/run.md"])

    def test_elsewhere_and_in_code_stay_as_they_are(self) -> None:
        text = "[a](https://example.org) [b](#here) [c](lost.md)\n```\n[d](../tools/run)\n```\n"
        self.assertEqual(self.text_of(text), text)


class Versions(unittest.TestCase):
    def test_are_listed_with_their_pages_newest_first(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for page in ("0.9.1/index.html", "0.10.0/index.html", "0.10.0/net/stream.html"):
                (root / page).parent.mkdir(parents=True, exist_ok=True)
                (root / page).touch()
            write_versions(root)
            self.assertEqual((root / "versions.js").read_text(),
                             'window.siteVersions = {"0.10.0": ["index.html", "net/stream.html"], '
                             '"0.9.1": ["index.html"]};\n')
            self.assertIn("url=0.10.0/index.html", (root / "index.html").read_text())


@unittest.skipIf(reference is None, "libclang 19 for Python is not installed")
class Reference(unittest.TestCase):
    def test_has_the_comments_and_declarations_of_a_header(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "include/tambour").mkdir(parents=True)
            (root / "include/tambour/pot.h").write_text(HEADER)
            page = reference.page_of(root, parse(root, "pot.h"), "pot.h")
        self.assertTrue(page.startswith("# <tambour/pot.h\\>\n\nPots: what boils.\n"), page)
        self.assertIn("Boils water, which takes a while. Not `copied`, and &lt;hot>:\n\n"
                      "- with a lid, \\*soon\\*,\n  or without;\n- slowly.\n\n```cpp\nPot pot(2);\n"
                      "pot.set_size(3);\n```\n\nThread: any.\n", page)
        self.assertIn("### `Pot`\n\n```cpp\nexplicit Pot(int size);\n```", page)
        self.assertIn("### `size`, `set_size`\n\n```cpp\nint size() const noexcept;\n"
                      "void set_size(int size);\n```\n\nLitres.", page)
        self.assertIn("struct PotOptions {\n  int size = 1;  ///< Litres.\n};", page)
        for hidden in ("Pot&&", "size_", "Wait", "Lid"):
            self.assertNotIn(hidden, page)

    def test_does_not_hide_that_a_header_does_not_compile(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "include/tambour").mkdir(parents=True)
            (root / "include/tambour/pot.h").write_text("#pragma once\nunknown x;\n")
            self.assertIsNone(parse(root, "pot.h"))


if __name__ == "__main__":
    unittest.main()
