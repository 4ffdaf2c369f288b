"""What this machine allows: open files and processors."""

import os
import resource
from dataclasses import dataclass

# Standard streams, the loop's own descriptors, a shared library being loaded: none needs more.
FDS_SPARE = 100


@dataclass(frozen=True)
class Limits:
    """The limits that clamp a suite's parameters."""

    open_files: int

    @property
    def pairs_max(self) -> int:
        """The most socket pairs that one process can hold."""
        return max(1, (self.open_files - FDS_SPARE) // 2)

    @property
    def descriptors_max(self) -> int:
        """The most connections of which one process can hold an end."""
        return max(1, self.open_files - FDS_SPARE)


def here() -> Limits:
    """The limits that children get: the hard limit of open files, to which each one is raised."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        hard = 1 << 20  # the kernel's own ceiling (fs.nr_open) unless someone moved it
    return Limits(hard)


def allowed_cpus() -> list[int]:
    """The processors this process may use, in order."""
    return sorted(os.sched_getaffinity(0))
