"""Builds the site of the documentation: the pages of the tree and a reference of the headers.

    tools/docs [--output FOLDER]
    tools/docs --versions FOLDER

The site is complete without a network, and works from the file system. Dead links, also to
headings, are errors. With --versions, the site is written to the folder of its version in FOLDER,
and its pages have a menu of the versions that are there.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tools/check"))

# pylint: disable=wrong-import-position
from check_comments import fault_of, undocumented  # noqa: E402
from check_headers import flags_of  # noqa: E402
from header_unit import parse  # noqa: E402
from pages import Pages  # noqa: E402
from reference import page_of  # noqa: E402
from versions import write_versions  # noqa: E402
# pylint: enable=wrong-import-position

# The tabs of the site, and the pages of docs/ in them.
SECTIONS = {
    "Guide": ["web-service", "mistakes", "event-loop", "events", "tasks", "streams",
              "connecting", "messages", "threads", "channels", "per-loop-state", "awaitables",
              "files", "processes", "datagrams", "restarting", "limits", "backends", "compilers"],
    "Protocols": ["http", "http-client", "http2", "websocket", "middleware", "reverse-proxy",
                  "server-sent-events", "downloads", "tls", "tls-production", "dns",
                  "many-machines"],
    "Test and observe": ["simulation", "testing", "observing", "metrics", "benchmarks"],
    "Other libraries": ["coming-from", "coming-from-libev", "coming-from-libevent",
                        "coming-from-evhttp", "coming-from-libuv", "coming-from-asio",
                        "coming-from-muduo", "coming-from-evpp", "coming-from-go",
                        "coming-from-tokio", "adapters", "client-libraries", "drop-ins", "perl"],
    "Project": ["when-not-to-use", "support", "dependencies", "examples", "types", "internals"],
}
PROJECT_FILES = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md"]


def title_of(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("\\", "") if found else "Untitled"


def add_reference(pages: Pages) -> list:
    """Adds the pages of the headers. Returns their part of the navigation."""
    headers = sorted(path.relative_to(ROOT / "include/tambour").as_posix()
                     for path in (ROOT / "include/tambour").rglob("*.h"))
    headers = [header for header in headers if not header.startswith("detail/")]
    whole = parse(ROOT, "tambour.h")
    if whole is None:
        sys.exit("<tambour/tambour.h> does not compile")
    installed = [header for header in headers if header.startswith("adapters/")
                 and flags_of(f"include/tambour/{header}") is not None]
    adapters = parse(ROOT, *installed)
    if adapters is None:
        sys.exit("an adapter does not compile")
    faults = [str(fault_of(ROOT, cursor))
              for unit, folder in ((whole, ""), (adapters, "adapters/"))
              for cursor in undocumented(unit, f"{ROOT}/include/tambour/{folder}")]
    if faults:
        sys.exit("\n".join(faults))
    navigation: dict[str, list[dict[str, str]]] = {}
    for header in headers:
        if "/" not in header:
            continue
        folder = header.split("/")[0]
        if folder == "adapters" and header not in installed:
            print(f"{header} is left out: its library is not installed")
            continue
        unit = adapters if folder == "adapters" else whole
        place = pages.place(f"include/tambour/{header}")
        pages.texts[place] = page_of(ROOT, unit, header)
        navigation.setdefault(folder, []).append({header: place})
    index = ("# Reference\n\nEach header can be included alone; `<tambour/tambour.h>` includes all."
             "\n\n")
    for folder, entries in navigation.items():
        lines = [f"# <tambour/{folder}.h\\>" if folder != "adapters" else "# <tambour/adapters/\\>",
                 ""]
        for entry in entries:
            (header, place), = entry.items()
            text = pages.texts[place].split("\n", 2)[2].strip()
            first = re.split(r"(?<=[.:])\s", text.replace("\n", " "))[0]
            lines.append(f"- [`<tambour/{header}>`]({place.split('/')[-1]}): {first}")
        pages.texts[f"reference/{folder}/index.md"] = "\n".join(lines) + "\n"
        index += f"- [{folder}]({folder}/index.md)\n"
    pages.texts["reference/index.md"] = index
    return ["reference/index.md",
            *({folder: [f"reference/{folder}/index.md", *entries]}
              for folder, entries in navigation.items())]


def navigation_of(pages: Pages, reference: list) -> list:
    known = {name for names in SECTIONS.values() for name in names}
    others = [path.stem for path in sorted((ROOT / "docs").glob("*.md"))
              if path.stem not in known]
    navigation: list = [{"Tambour": "index.md"}]
    for section, names in SECTIONS.items():
        entries: list = [{title_of(pages.texts[f"{name}.md"]): f"{name}.md"} for name in names]
        if section == "Guide":
            entries += [{title_of(pages.texts[f"{name}.md"]): f"{name}.md"} for name in others]
        if section == "Project":
            entries += [{title_of(pages.texts[pages.place(path)]): pages.place(path)}
                        for path in PROJECT_FILES]
            entries.append({"Decisions": "decisions/index.md"})
        navigation.append({section: entries})
    navigation.append({"Reference": reference})
    return navigation


def as_yaml(value: object, indent: int = 0) -> str:
    """Lists, objects with one entry, and strings."""
    pad = "  " * indent
    lines = []
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, str):
            lines.append(f"{pad}- {entry}")
            continue
        (name, content), = entry.items()
        quoted = '"' + name.replace("\\", "").replace('"', "'") + '"'
        if isinstance(content, str):
            lines.append(f"{pad}- {quoted}: {content}")
        else:
            lines += [f"{pad}- {quoted}:", as_yaml(content, indent + 2)]
    return "\n".join(lines)


def settings_of(version: str, arguments: argparse.Namespace, work: Path, output: Path) -> str:
    """The settings of MkDocs, without the navigation."""
    settings = (HERE / "mkdocs.yml").read_text()
    if arguments.versions:
        settings += "extra: {has_versions: true}\n"
    else:  # Two versions of the site can be told apart.
        settings = settings.replace("site_name: Tambour\n", f"site_name: Tambour {version}\n")
    settings = settings.replace("theme:\n", f"theme:\n  custom_dir: {HERE}/theme\n")
    return settings + f"docs_dir: {work}/pages\nsite_dir: {output}\nnav:\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the site of the documentation.")
    parser.add_argument("--output", type=Path, default=ROOT / "build/site")
    parser.add_argument("--versions", type=Path, help="a folder with a site for each version")
    arguments = parser.parse_args()
    if shutil.which("mkdocs") is None:
        sys.exit("mkdocs is not installed (run make docs)")
    version = re.search(r'version = "([\d.]+)"',
                        (ROOT / "include/tambour/base/version.h").read_text())[1]
    output = arguments.versions / version if arguments.versions else arguments.output
    work = ROOT / "build/docs"
    shutil.rmtree(work, ignore_errors=True)
    pages = Pages(ROOT)
    for path in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md",
                 *(ROOT / name for name in PROJECT_FILES)]:
        pages.add_document(path.relative_to(ROOT).as_posix())
    reference = add_reference(pages)
    pages.add_wanted()
    pages.write(work / "pages")
    settings = settings_of(version, arguments, work, output.resolve())
    (work / "mkdocs.yml").write_text(settings + as_yaml(navigation_of(pages, reference), 1) + "\n")
    # With --quiet, MkDocs would not count the warnings that --strict turns into a failure.
    result = subprocess.run(["mkdocs", "build", "--strict", "--clean", "--config-file",
                             work / "mkdocs.yml"], check=False, capture_output=True, text=True,
                            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if result.returncode != 0:
        sys.exit("\n".join(line for line in (result.stdout + result.stderr).splitlines()
                           if not line.startswith("INFO")))
    if arguments.versions:
        write_versions(arguments.versions)
    print(f"{len(pages.texts)} pages: {output}/index.html")


main()
