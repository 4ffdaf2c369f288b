"""Checks that what documents refer to exists: files, headings, directories and tests.

Checked are links, `paths/from/the/root` of files and directories, and tests named as
`folder/name_test`. Links to other sites are not followed.
"""

import os
import re
from collections.abc import Iterator

from tree import Fault, Tree

CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^()\s#]*)(?:#([^()\s]*))?\)")
SITE = re.compile(r"[a-z]+:")
PATH = re.compile(r"`((?:src|tests|include|compat|examples|bench|docs|tools|bindings|cmake)/"
                  r"[\w./-]*\w)/?`")
TEST = re.compile(r"`(?:tests/)?((?:[a-z_]+/)+[a-z_]+_test)`")
HEADING = re.compile(r"^#+ +(.*?)\s*#*$", re.MULTILINE)


def blank(found: re.Match) -> str:
    return "\n" * found.group().count("\n")


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(CODE_BLOCK.sub(blank, text)):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        found[name] = found.get(name, 0) + 1
    return {name if index == 0 else f"{name}-{index}"
            for name, count in found.items() for index in range(count)}


def run(tree: Tree) -> Iterator[Fault]:
    existing = set(tree.paths)
    for path in tree.paths:
        while path := path.rpartition("/")[0]:
            existing.add(path)
    existing.add("")
    # The template becomes a tree of its own.
    documents = [path for path in tree.under("", suffixes=(".md",))
                 if not path.startswith("tools/template/")]
    texts = {path: (tree.root / path).read_text(encoding="utf-8") for path in documents}
    for path, text in texts.items():
        prose = CODE_BLOCK.sub(blank, text)

        def fault(found: re.Match, message: str, path: str = path, prose: str = prose) -> Fault:
            return Fault(path, prose.count("\n", 0, found.start()) + 1, message)

        for found in PATH.finditer(prose):
            if found[1] not in existing:
                yield fault(found, f"{found[1]} does not exist")
        for found in TEST.finditer(prose):
            if f"tests/{found[1]}.cpp" not in existing:
                yield fault(found, f"there is no test tests/{found[1]}.cpp")
        prose = CODE.sub(lambda code: " " * len(code.group()), prose)
        for found in LINK.finditer(prose):
            target, anchor = found[1], found[2]
            if SITE.match(target):
                continue
            folder = os.path.dirname(path)
            target = os.path.normpath(os.path.join(folder, target)) if target else path
            target = "" if target == "." else target
            if target not in existing:
                yield fault(found, f"{found[1]} does not exist")
            elif anchor and target in texts and anchor not in anchors(texts[target]):
                yield fault(found, f"{target} has no heading #{anchor}")
