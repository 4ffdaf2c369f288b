"""Checks that the index of types (docs/types.md) is that of the public headers."""

from collections.abc import Iterator

from tree import Fault, Tree
from type_index import PAGE, text_of


def run(tree: Tree) -> Iterator[Fault]:
    expected = text_of(tree).splitlines()
    found = tree.lines(PAGE) if PAGE in tree.paths else []
    for number, line in enumerate(expected, start=1):
        if number > len(found) or found[number - 1] != line:
            yield Fault(PAGE, number, f"must be `{line}`: run tools/write-type-index")
            return
    if len(found) > len(expected):
        yield Fault(PAGE, len(expected) + 1, "must end here: run tools/write-type-index")
