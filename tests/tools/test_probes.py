"""Verifies that the library has exactly the static probes that docs/observing.md describes.

usage: test_probes.py LIBRARY
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The number of arguments of each probe.
PROBES = {"poll": 1, "submit": 2, "complete": 2, "timer": 2, "dispatch": 1}

NOTE = re.compile(r"Provider: tambour\n\s+Name: (\w+)\n[^\n]*\n\s+Arguments: ([^\n]*)\n")


def probes_of(notes: str) -> dict[str, set[int]]:
    """Returns the argument counts of each probe in the output of `readelf -n`, keyed by name."""
    found: dict[str, set[int]] = {}
    for name, arguments in NOTE.findall(notes):
        # Each argument is printed as size@location.
        found.setdefault(name, set()).add(arguments.count("@"))
    return found


def main() -> int:
    if shutil.which("readelf") is None:
        print("skipped: readelf is not installed")
        return 77
    notes = subprocess.run(["readelf", "-n", sys.argv[1]], capture_output=True, text=True,
                           check=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout
    found = probes_of(notes)
    document = (ROOT / "docs/observing.md").read_text()
    described = set(re.findall(r"^\| `tambour:(\w+)` \|", document, re.MULTILINE))
    print(f"in the library: {found}\nin docs/observing.md: {sorted(described)}")
    expected = {name: {count} for name, count in PROBES.items()}
    return 0 if found == expected and described == set(PROBES) else 1


if __name__ == "__main__":
    sys.exit(main())
