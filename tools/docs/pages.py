"""The pages of the site: the documents of the tree with links that work inside the site."""

import os
import re
import shutil
from pathlib import Path

CODE_BLOCK = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s#]*)(#[^()\s]*)?\)")
# The metadata of a page that the search ignores.
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"
# How the search weighs pages: a class leads to its reference, and not to a decision about it.
BOOSTS = {"reference/": 2, "decisions/": 0.2, "CHANGELOG.md": 0.2}
# Pages with programs side by side use the whole width of the window.
WIDE = "---\nhide:\n  - navigation\n  - toc\n---\n"
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".sh": "bash", ".pm": "perl"}


class Pages:
    """Where each file of the tree is in the site, and the text of its page."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts: dict[str, str] = {}
        self.pictures: dict[str, Path] = {}
        self.wanted: list[str] = []  # Files that links refer to and that have no page yet.

    def place(self, path: str) -> str:
        """The page of a file or directory, given from the root of the tree."""
        if path == "README.md":
            return "index.md"
        if path.startswith("include/tambour"):
            name = path.removeprefix("include/tambour").strip("/")
            if not name or (self.root / path).is_dir():
                return f"reference/{name}/index.md" if name else "reference/index.md"
            if "/" not in name:  # An umbrella header.
                return f"reference/{name.removesuffix('.h')}/index.md"
            return f"reference/{name.removesuffix('.h')}.md"
        if path.startswith("docs/"):
            path = path.removeprefix("docs/")
            if path.endswith(".png"):
                return path
        if path.endswith(".md"):
            return re.sub(r"README\.md$", "index.md", path)
        if (self.root / path).is_dir():
            return f"source/{path.strip('/') or 'tree'}/index.md"
        return f"source/{path}.md"

    def add_document(self, path: str) -> None:
        """A Markdown file of the tree."""
        text = (self.root / path).read_text(encoding="utf-8")
        parts = CODE_BLOCK.split(text)
        head = WIDE if '<div class="sides"' in text else ""
        self.texts[self.place(path)] = head + "".join(
            part if index % 2 else LINK.sub(lambda link: self.rewritten(path, link), part)
            for index, part in enumerate(parts))

    def rewritten(self, path: str, link: re.Match) -> str:
        target, anchor = link[1], link[2] or ""
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        aim = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if not (self.root / aim).exists():
            return link[0]  # A build strict about links reports it.
        page = self.place("" if aim == "." else aim)
        self.wanted.append(aim)
        return f"]({os.path.relpath(page, os.path.dirname(self.place(path)) or '.')}{anchor})"

    def add_wanted(self) -> None:
        """Pages for files and directories that links refer to, until none is missing."""
        while self.wanted:
            path = self.wanted.pop()
            if self.place(path) in self.texts:
                continue
            if self.place(path).endswith(".png"):
                self.pictures[self.place(path)] = self.root / path
            elif path.endswith(".md"):
                self.add_document(path)
            elif (self.root / path).is_dir():
                readme = f"{path}/README.md".removeprefix("./")
                if (self.root / readme).exists():
                    self.add_document(readme)
                self.texts.setdefault(self.place(path), self.listing(path))
            else:
                language = LANGUAGES.get(Path(path).suffix, "text")
                text = (self.root / path).read_text(encoding="utf-8", errors="replace")
                fence = "`" * 5
                self.texts[self.place(path)] = \
                    f"{UNSEARCHED}# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"

    def listing(self, path: str) -> str:
        here = self.place(path)
        lines = []
        for entry in sorted((self.root / path).iterdir()):
            aim = f"{path}/{entry.name}".removeprefix("./")
            if entry.name.startswith(".") or entry.name in ("build", "__pycache__"):
                continue
            if self.place(aim) in self.texts:
                link = os.path.relpath(self.place(aim), os.path.dirname(here))
                lines.append(f"- [{entry.name}]({link})")
            else:
                lines.append(f"- {entry.name}{'/' if entry.is_dir() else ''}")
        return f"{UNSEARCHED}# {path}\n\n" + "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        for place, text in self.texts.items():
            boost = next((value for begin, value in BOOSTS.items() if place.startswith(begin)), 1)
            if boost != 1 and not text.startswith("---"):
                text = f"---\nsearch:\n  boost: {boost}\n---\n{text}"
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text, encoding="utf-8")
        for place, file in self.pictures.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / place)
