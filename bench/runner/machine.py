"""Describes the machine: what is needed to judge the results, nothing that identifies it."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path

from .limits import Limits

_CPU = "/sys/devices/system/cpu"


def describe(build: Path, repository: Path, limits: Limits, cpus: list[int], cpu: int) -> dict:
    """The `machine` part of the document, without host name and paths."""
    facts = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
        "cpu": _cpu_model(),
        "cores": len(cpus),
        "cores_of_machine": os.cpu_count(),
        "pinned_cpu": cpu,
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "governor": _text(f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor") or None,
        "virtualised": "hypervisor" in _cpuinfo("flags").split(),
        "open_files_limit": limits.open_files,
        "git_revision": _git_revision(repository),
        **_compiler(build),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _cpuinfo(field: str) -> str:
    found = re.search(rf"^{field}\s*:\s*(.*)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return found.group(1).strip() if found else ""


def _cpu_model() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _compiler(build: Path) -> dict:
    """Compiler, version and build type, read from CMake's files in the build directory."""
    cache = _text(str(build / "CMakeCache.txt"))
    facts = {"compiler": None, "build_type": None, "cxx_flags": None}
    kind = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\S+)$", cache, re.MULTILINE)
    if kind:
        facts["build_type"] = kind.group(1)
        named = f"CMAKE_CXX_FLAGS_{kind.group(1).upper()}"
        flags = re.search(rf"^{named}:\w+=([^/\n]*)$", cache, re.MULTILINE)
        facts["cxx_flags"] = flags.group(1).strip() if flags and flags.group(1) else None
    for path in sorted(build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")):
        found = dict(re.findall(r'^set\(CMAKE_CXX_COMPILER_(ID|VERSION) "([^"]*)"\)$',
                               _text(str(path)), re.MULTILINE))
        if "ID" in found:
            facts["compiler"] = f"{found['ID']} {found.get('VERSION', '')}".strip()
    return facts


def _git_revision(repository: Path) -> str | None:
    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True,
                                  text=True, timeout=10, check=False)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    revision = git("rev-parse", "--short=12", "HEAD")
    if not revision:
        return None
    changed = git("status", "--porcelain", "--untracked-files=no")
    return revision + (" with changes" if changed else "")


class LoadMeter:
    """Measures how much processor time the hypervisor gave to other machines during the run."""

    def __init__(self) -> None:
        self._before = _steal_and_total()
        self._load = os.getloadavg()[0]

    def facts(self) -> dict:
        """For the `machine` part, at the end of the run."""
        steal, total = (now - then for now, then in zip(_steal_and_total(), self._before))
        share = round(100 * steal / total, 2) if total > 0 else 0.0
        return {"load_at_start": round(self._load, 2), "steal_percent": share}


def _steal_and_total() -> tuple[int, int]:
    """Ticks of steal time, and all ticks, of all processors."""
    first = _text("/proc/stat").partition("\n")[0].split()[1:]
    ticks = [int(word) for word in first[:8]]
    return (ticks[7], sum(ticks)) if len(ticks) == 8 else (0, 0)
