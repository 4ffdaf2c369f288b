"""Verifies that the library has exactly the static probes that docs/observing.md describes, and
that bpftrace accepts the scripts for them.

usage: test_probes.py LIBRARY... (the scripts are checked with shared libraries)
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The number of arguments of each probe.
PROBES = {"poll": 1, "wait_timer": 1, "submit": 2, "complete": 2, "timer": 2, "dispatch": 1,
          "accept": 1, "connect": 2, "request_begin": 2, "request_end": 2, "lookup_begin": 3,
          "lookup_end": 2}

NOTE = re.compile(r"Provider: tambour\n\s+Name: (\w+)\n[^\n]*\n\s+Arguments: ([^\n]*)\n")


def probes_of(notes: str) -> dict[str, set[int]]:
    """Returns the argument counts of each probe in the output of `readelf -n`, keyed by name."""
    found: dict[str, set[int]] = {}
    for name, arguments in NOTE.findall(notes):
        # Each argument is printed as size@location.
        found.setdefault(name, set()).add(arguments.count("@"))
    return found


def probes_in(library: str) -> dict[str, set[int]]:
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True,
                           env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout
    return probes_of(notes)


def check_scripts(libraries: dict[str, dict[str, set[int]]]) -> bool:
    """Compiles each script of tools/bpftrace for the library with its probes, without attaching."""
    if shutil.which("bpftrace") is None:
        print("bpftrace is not installed: its scripts are not checked")
        return True
    passed = True
    scripts = sorted((ROOT / "tools/bpftrace").glob("*.bt"))
    for script in scripts:
        probes = re.findall(r"^usdt:\$1:tambour:(\w+)", script.read_text(), re.MULTILINE)
        library = next((name for name, found in libraries.items() if found.keys() >= set(probes)),
                       "")
        ran = subprocess.run(["bpftrace", "-d", script, library, "5"], capture_output=True,
                             text=True, check=False, timeout=120)
        errors = [line for line in (ran.stdout + ran.stderr).splitlines()
                  if "ERROR" in line and "RLIMIT_MEMLOCK" not in line]
        compiled = "ret i64 0" in ran.stdout + ran.stderr
        print(f"{script.name}: compiled: {compiled} {errors}")
        passed = passed and compiled and not errors
    return passed and len(scripts) > 0


def main() -> int:
    if shutil.which("readelf") is None:
        print("skipped: readelf is not installed")
        return 77
    libraries = {library: probes_in(library) for library in sys.argv[1:]}
    found: dict[str, set[int]] = {}
    for probes in libraries.values():
        for name, counts in probes.items():
            found.setdefault(name, set()).update(counts)
    document = (ROOT / "docs/observing.md").read_text()
    described = set(re.findall(r"^\| `tambour:(\w+)` \|", document, re.MULTILINE))
    print(f"in the library: {found}\nin docs/observing.md: {sorted(described)}")
    expected = {name: {count} for name, count in PROBES.items()}
    if found != expected or described != set(PROBES):
        return 1
    is_shared = all(library.endswith(".so") for library in libraries)
    return 0 if not is_shared or check_scripts(libraries) else 1


if __name__ == "__main__":
    sys.exit(main())
