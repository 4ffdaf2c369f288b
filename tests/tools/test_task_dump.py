"""Verifies that gdb lists the same tasks as a program's dump: in the process and in a core file.

usage: test_task_dump.py PROGRAM       (examples/task_dump.cpp)
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/tambour_gdb.py"
# The loop, two tasks with one wait, and two with four: a call of timeout().
LINES = 1 + 2 * (1 + 1) + 2 * (1 + 4)
HEADER = ROOT / "include/tambour/task/wait_kind.h"


def run_gdb(*arguments: str) -> str:
    """Returns the lines about tasks that gdb prints."""
    ran = subprocess.run(["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off",
                          "-ex", f"source {SCRIPT}", *arguments],
                         capture_output=True, text=True, check=False, timeout=200)
    print(ran.stdout, ran.stderr)
    lines = ran.stdout.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("tasks of the loop")), None)
    return "" if first is None else "\n".join(lines[first:])


def without_times(dump: str) -> list[str]:
    """Removes what differs between two times, and the number of the thread."""
    lines = []
    for line in dump.splitlines():
        line = re.sub(r", (for )?-?[0-9.]+ s( left)?", "", line)
        line = re.sub(r", in thread \d+", "", line)
        if line.startswith(("tasks of", "task ", "  ")):
            lines.append(line)
    return lines


def check_names() -> None:
    """The script has the names of all kinds, in the order of the header."""
    body = re.search(r"enum class WaitKind[^{]*\{(.*?)\};", HEADER.read_text(), re.S).group(1)
    names = re.findall(r"^\s+(\w+),", body, re.M)
    found = re.search(r"KINDS = \((.*?)\)", SCRIPT.read_text(), re.S).group(1)
    assert re.findall(r'"(\w+)"', found) == names, (names, found)


def main() -> int:
    check_names()
    if shutil.which("gdb") is None:
        print("skipped: gdb is not installed")
        return 77
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, \
         subprocess.Popen([program, "--serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            core = Path(folder) / "core"
            live = run_gdb("-p", str(process.pid), "-ex", "tambour-tasks",
                           "-ex", f"generate-core-file {core}")
            process.send_signal(signal.SIGQUIT)
            dump = [process.stderr.readline() for _ in range(LINES)]
        finally:
            process.kill()
        expected = without_times("".join(dump))
        print("".join(dump))
        if not live:
            print("skipped: gdb cannot attach to a process here")
            return 77
        of_core = run_gdb(program, str(core), "-ex", "tambour-tasks")
    assert any("mutex" in line for line in expected), expected
    assert any("event" in line for line in expected), expected
    assert without_times(live) == expected, (without_times(live), expected)
    assert without_times(of_core) == expected, (without_times(of_core), expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
