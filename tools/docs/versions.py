"""The sites of several versions in one folder."""

import json
import re
from pathlib import Path


def write_versions(folder: Path) -> None:
    """Writes the list of the versions in a folder with their pages, and a page that opens the
    newest. The list is a script, because pages of the file system can read no other file."""
    sites = sorted((site for site in folder.iterdir() if re.fullmatch(r"\d+(\.\d+)+", site.name)),
                   reverse=True, key=lambda site: [int(part) for part in site.name.split(".")])
    versions = {site.name: sorted(page.relative_to(site).as_posix()
                                  for page in site.rglob("*.html")) for site in sites}
    (folder / "versions.js").write_text(f"window.siteVersions = {json.dumps(versions)};\n")
    newest = next(iter(versions))
    (folder / "index.html").write_text(
        f'<!doctype html>\n<meta charset="utf-8">\n<title>Tambour {newest}</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}/index.html">\n'
        f'<a href="{newest}/index.html">Tambour {newest}</a>\n')
