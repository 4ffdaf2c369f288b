"""The declarations of the public headers, as libclang reads them."""

from pathlib import Path

from check_headers import flags_of
from clang import cindex
from clang.cindex import Cursor

LIBRARY = "/usr/lib/llvm-19/lib/libclang-19.so.1"


def parse(root: Path, *headers: str) -> Cursor | None:
    """The declarations of headers, which are named without include/tambour/, and of all that they
    include; None if they do not compile. Adapters need the flags of their library."""
    if not cindex.Config.loaded:
        cindex.Config.set_library_file(LIBRARY)
    flags = ["-x", "c++", "-std=c++23", f"-I{root}/include"]
    for header in headers:
        flags += flags_of(f"include/tambour/{header}") or []
    name = str(root / "headers.cpp")
    text = "".join(f"#include <tambour/{header}>\n" for header in headers)
    unit = cindex.Index.create().parse(
        name, args=flags, unsaved_files=[(name, text)],
        options=cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)
    failed = any(message.severity >= cindex.Diagnostic.Error for message in unit.diagnostics)
    return None if failed else unit.cursor
