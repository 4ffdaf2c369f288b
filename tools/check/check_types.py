"""Checks that the index of types (docs/types.md) is that of the public headers, and that the module
exports these types and functions, but for adapters, and that each has a description. The test
package.module compiles the module."""

from collections.abc import Iterator

from tree import Fault, Tree
from type_index import MODULE, PAGE, declared, text_of


def not_exported(tree: Tree) -> Iterator[Fault]:
    if MODULE not in tree.paths:
        return
    exported = {line for line in tree.lines(MODULE) if line.startswith("using ")}
    for namespace, found in sorted(declared(tree).items()):
        for name, headers in sorted((found.types | found.functions).items()):
            if all(header.startswith("tambour/adapters/") for header in headers):
                continue
            if f"using {namespace}::{name};" not in exported:
                yield Fault(MODULE, 1, f"must export {namespace}::{name}: run tools/write-module")


def not_described(tree: Tree) -> Iterator[Fault]:
    for found in declared(tree).values():
        for name, headers in sorted((found.types | found.functions).items()):
            for header, text in sorted(headers.items()):
                if not text:
                    yield Fault(f"include/{header}", 1, f"must describe {name} (`///`)")


def run(tree: Tree) -> Iterator[Fault]:
    expected = text_of(tree).splitlines()
    found = tree.lines(PAGE) if PAGE in tree.paths else []
    for number, line in enumerate(expected, start=1):
        if number > len(found) or found[number - 1] != line:
            yield Fault(PAGE, number, f"must be `{line}`: run tools/write-type-index")
            break
    if len(found) > len(expected):
        yield Fault(PAGE, len(expected) + 1, "must end here: run tools/write-type-index")
    yield from not_described(tree)
    yield from not_exported(tree)
